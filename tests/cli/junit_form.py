"""What both schemas of JUnit XML that Jenkins checks by (jenkins-junit.xsd, junit-10.xsd) allow: which elements stand in
which, in which order, with which attributes. With anything else a file is refused."""

# element: its elements in their order, attributes that must be there, attributes that may be
FORM = {
    "testsuites": (["testsuite"], {"name"}, {"tests", "failures", "errors", "time"}),
    "testsuite": (["properties", "testcase", "system-out", "system-err"], {"name", "tests", "failures", "errors"},
                  {"time", "skipped", "timestamp", "hostname", "id", "package"}),
    "properties": (["property"], set(), set()),
    "property": ([], {"name", "value"}, set()),
    "testcase": (["skipped", "error", "failure", "system-out", "system-err"], {"name", "classname"}, {"time"}),
    "skipped": ([], set(), {"message", "type"}),
    "error": ([], set(), {"message", "type"}),
    "failure": ([], set(), {"message", "type"}),
    "system-out": ([], set(), set()),
    "system-err": ([], set(), set()),
}
TEXT = {"skipped", "error", "failure", "system-out", "system-err"}
NUMBERS = {"tests", "failures", "errors", "skipped"}


def complaints(element):
    """What is wrong with it and with what stands in it, one text each."""
    if element.tag not in FORM:
        return [f"{element.tag} is no element of it"]
    order, must, may = FORM[element.tag]
    found = [f"{element.tag} without {name}" for name in must - set(element.keys())]
    found += [f"{element.tag} with {name}" for name in set(element.keys()) - must - may]
    found += [f"{element.tag}: {name} {element.get(name)!r} is no number" for name in NUMBERS & set(element.keys())
              if not element.get(name).isdecimal()]
    seconds = element.get("time", "0")
    whole, _, rest = seconds.partition(".")
    if not whole.isdecimal() or (rest and not rest.isdecimal()) or (element.tag != "testcase" and len(rest) > 3):
        found.append(f"{element.tag}: time {seconds!r} is not in seconds and thousandths")
    places = [order.index(child.tag) if child.tag in order else -1 for child in element]
    if -1 in places or places != sorted(places):
        found.append(f"{element.tag}: {', '.join(child.tag for child in element)[:200]} in this order")
    if element.tag == "testcase" and sum(child.tag in ("skipped", "error", "failure") for child in element) > 1:
        found.append(f"{element.get('name')!r} has several results")
    if element.tag not in TEXT and (element.text or "").strip():
        found.append(f"{element.tag}: text {element.text.strip()[:100]!r}")
    for child in element:
        found += complaints(child)
        if (child.tail or "").strip():
            found.append(f"{element.tag}: text {child.tail.strip()[:100]!r}")
    return found
