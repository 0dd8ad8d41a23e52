# One --help text (usage, what it does, options, and what follows) as roff. Variables: how ("page": sections of a page;
# "section": one command of a program), title (the command), name (of the program).

function plain(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    gsub(/'/, "\\(aq", text)
    gsub(/`/, "\\(ga", text)
    if (text ~ /^[.]/) text = "\\&" text
    return text
}

function heading(text) {
    print (how == "page" ? ".SH " : ".PP\n.B ") text
    headed = how == "page"
}

# The head of an option: what is typed in bold, what it stands for in italics.
function option(head,   words, n, k, text) {
    n = split(head, words, " ")
    for (k = 1; k <= n; k++) {
        gsub(/,$/, "", words[k])
        if (words[k] ~ /^-/) text = text (text ? ", " : "") "\\fB" plain(words[k]) "\\fR"
        else text = text " \\fI" plain(words[k]) "\\fR"
    }
    print ".TP"
    print text
}

# Lines as they were typed, from now on or no more.
function verbatim(on) {
    if (on == raw) return
    print (!on ? ".fi" : headed ? ".nf" : ".PP\n.nf")
    raw = on
    headed = 0
}

BEGIN { part = "usage" }

part == "usage" && /^$/ {
    part = "about"
    next
}
part == "usage" {
    sub(/^usage: /, "")
    sub(/^ +/, "")
    usage[++lines] = $0
    next
}

part == "about" && /^options:$/ {
    about_end()
    heading("OPTIONS")
    part = "options"
    next
}
part == "about" {
    about[++told] = $0
    next
}

part == "options" && /^$/ {
    part = "after"
    next
}
part == "options" && /^  (    )?-/ {
    line = $0
    sub(/^ +/, "", line)
    match(line, /^(-[A-Za-z0-9], )?--[^ ]+( [^ ]+)?/)
    option(substr(line, 1, RLENGTH))
    line = substr(line, RLENGTH + 1)
    sub(/^ +/, "", line)
    if (line != "") print plain(line)
    next
}
part == "options" {
    sub(/^ +/, "")
    print plain($0)
    next
}

# examples:, exit codes: and whatever else there is, as it was typed
/^[a-z ]+:$/ {
    verbatim(0)
    sub(/:$/, "")
    heading(/^exit codes/ ? "EXIT STATUS" : toupper($0))
    verbatim(1)
    next
}
/^exit codes: / {
    verbatim(0)
    sub(/^exit codes: /, "")
    heading("EXIT STATUS")
    if (how != "page") print ".br"
    print plain($0)
    next
}
/^$/ {
    ended = 1
    next
}
{
    if (ended && raw && !/^ /) {
        verbatim(0)
        heading("NOTES")
    }
    ended = 0
    verbatim(1)
    print plain($0)
}
END { verbatim(0) }

function about_end(   k, sentence) {
    if (how == "page") {
        for (k = 1; k <= told && about[k] != ""; k++) sentence = sentence about[k] " "
        sentence = substr(sentence, 1, index(sentence, ". ") - 1)
        print ".SH NAME"
        print name " \\- " tolower(substr(sentence, 1, 1)) plain(substr(sentence, 2))
        print ".SH SYNOPSIS"
    } else {
        print ".SS " name " " title
    }
    print ".nf"
    for (k = 1; k <= lines; k++) print plain(usage[k])
    print ".fi"
    print (how == "page" ? ".SH DESCRIPTION" : ".PP")
    headed = how == "page"
    for (k = 1; k <= told; k++) {
        if (about[k] == "") {
            if (!raw && k < told && about[k + 1] !~ /^ /) print ".PP"
            continue
        }
        verbatim(about[k] ~ /^ /)
        print plain(about[k])
        headed = 0
    }
    verbatim(0)
}
