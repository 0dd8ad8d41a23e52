// What report.html does beyond being read: sections fold, the table sorts, filters and searches, dots of the roofline say
// what they are. All data is in the page; nothing is fetched, and no text becomes markup (textContent alone).
"use strict";
(() => {
  const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));
  document.documentElement.classList.remove("plain");

  // Sections: closed until somebody wants one.
  const sections = all("details.op, details.more");
  for (const section of sections) section.open = false;
  const reveal = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (!target) return;
    const section = target.closest("details");
    if (section) section.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (link && link.getAttribute("href") === location.hash) reveal();
  });
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = sections.filter((section) => !section.open);
    for (const section of folded) section.open = true;
  });
  addEventListener("afterprint", () => {
    for (const section of folded) section.open = false;
  });

  // The table: a click on a column's head sorts by it, another one turns the order around. Filters: what is chosen in a
  // select must be one of a row's data-f words, and each word of the search must be in the row's text. Of very many rows
  // only the first are laid out until all are asked for, and without a filter those that take time of their own.
  const MOST = 500;
  const value = (cell) => (cell.dataset.v !== undefined ? Number(cell.dataset.v) : cell.textContent.trim().toLowerCase());
  const words = new Intl.Collator("en", { numeric: true });
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a === typeof b) return words.compare(a, b);
    return typeof a === "number" ? -1 : 1;
  };
  const enhance = (tools) => {
    const table = document.getElementById(tools.dataset.table);
    const body = table.tBodies[0];
    const heads = Array.from(table.tHead.rows[0].cells);
    const search = tools.querySelector("input");
    const selects = all("select", tools);
    const more = tools.querySelector("button[type=button]");
    const shown = tools.querySelector("output");
    let limit = MOST;
    let idle = false; // whether what takes no time of its own is shown without being asked for
    // What is searched: the row, and the layers in its operation's section; put together when first something is typed.
    const layers = (row) => {
      const link = row.querySelector("th a");
      return (link && document.querySelector(`${link.hash} .layers`)?.textContent) ?? "";
    };
    const textOf = (one) => (one.text ??= (one.row.textContent + layers(one.row)).toLowerCase());
    let rows = Array.from(body.rows, (row) => ({ row, is: new Set(row.dataset.f.split(" ")) }));

    const filter = () => {
      const wanted = selects.map((select) => select.value).filter(Boolean);
      const typed = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const asked = idle || wanted.length + typed.length > 0;
      let found = 0;
      let count = 0;
      for (const one of rows) {
        const { row, is } = one;
        const fits = wanted.every((word) => is.has(word)) && typed.every((word) => textOf(one).includes(word));
        if (fits) found += 1;
        row.hidden = !fits || count === limit || (!asked && is.has("o-outside"));
        if (!row.hidden) count += 1;
      }
      more.hidden = count === found;
      more.textContent = `show all ${found}`;
      shown.textContent = `${count} of ${rows.length} shown`;
    };
    const sort = (column, descending) => {
      rows.forEach((one, order) => {
        one.order = order;
        one.value = value(one.row.cells[column]);
      });
      rows.sort((a, b) => (descending ? compare(b.value, a.value) : compare(a.value, b.value)) || a.order - b.order);
      heads.forEach((head, k) => {
        if (k === column) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      });
      filter();
      body.replaceChildren(...rows.map(({ row }) => row));
    };
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        sort(column, now ? now === "ascending" : head.classList.contains("n") && column > 0);
      });
    });
    let waiting = 0;
    search.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(filter, rows.length > MOST ? 120 : 0);
    });
    for (const select of selects) select.addEventListener("change", filter);
    more.addEventListener("click", () => {
      limit = Infinity;
      idle = true;
      filter();
    });
    tools.addEventListener("reset", () => setTimeout(filter));
    tools.addEventListener("submit", (event) => event.preventDefault());
    tools.hidden = false;
    filter();
  };
  all("form.tools").forEach(enhance);

  // Dots: one stop for the tab key in each chart, arrows go on from there; what a dot says stands beside it.
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true"); // the dot's own name says the same
  document.body.append(tip);
  const hide = () => (tip.hidden = true);
  const show = (dot) => {
    tip.textContent = dot.getAttribute("aria-label");
    tip.hidden = false;
    const at = dot.getBoundingClientRect();
    const left = Math.min(Math.max(8, at.left + at.width / 2 - tip.offsetWidth / 2), innerWidth - tip.offsetWidth - 8);
    const above = at.top - tip.offsetHeight - 8;
    tip.style.left = `${left}px`;
    tip.style.top = `${above > 8 ? above : at.bottom + 8}px`;
  };
  for (const chart of all("svg.dots")) {
    const dots = all("a", chart);
    dots.forEach((dot, k) => {
      const title = dot.querySelector("title");
      dot.setAttribute("aria-label", title.textContent);
      title.remove(); // else the browser shows it a second time
      dot.setAttribute("tabindex", k ? "-1" : "0");
    });
    const dotOf = (event) => event.target.closest("svg.dots a");
    const say = (event) => (dotOf(event) ? show(dotOf(event)) : hide());
    const frame = chart.parentElement; // an SVG that listens to focus would be a stop of its own
    frame.addEventListener("mouseover", say);
    frame.addEventListener("mouseleave", hide);
    frame.addEventListener("focusin", say);
    frame.addEventListener("focusout", hide);
    frame.addEventListener("keydown", (event) => {
      if (event.key === "Escape") hide();
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step || !dots.includes(dotOf(event))) return;
      event.preventDefault();
      const from = dotOf(event);
      const to = dots[(dots.indexOf(from) + step + dots.length) % dots.length];
      from.setAttribute("tabindex", "-1");
      to.setAttribute("tabindex", "0");
      to.focus();
    });
  }
  const follow = () => {
    if (!tip.hidden && document.activeElement.closest("svg.dots a")) show(document.activeElement);
    else hide();
  };
  addEventListener("scroll", follow, { passive: true });
  reveal();
})();
