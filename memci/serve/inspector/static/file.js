// A file of one conversation is whole without this script: it adds a field that finds words in the file's pages.
"use strict";

const pages = [...document.querySelectorAll("#pages > details")];
const plain = (text) => text.toLowerCase().replace(/\s+/g, " ").trim();
const messages = (page) => [...page.querySelectorAll(".message pre")];
let texts; // of the pages; they are read when something is first typed

function holding(fact) {
  texts ??= pages.map((page) => plain(messages(page).map((each) => each.textContent).join(" ")));
  const having = (parts) => pages.filter((_, at) => parts.every((part) => texts[at].includes(part)));
  const exact = having([fact]);
  return exact.length ? [exact, [fact]] : [having(fact.split(" ")), fact.split(" ")];
}

function rangeOf(node, startOffset, endOffset) {
  return new StaticRange({ startContainer: node, startOffset, endContainer: node, endOffset });
}

function mark(shown, parts) {
  if (!globalThis.Highlight) return;
  const marks = new Highlight();
  for (const page of shown) {
    const walker = document.createTreeWalker(page, NodeFilter.SHOW_TEXT);
    for (let node; (node = walker.nextNode());) {
      if (!node.parentElement.closest(".message pre")) continue;
      const text = node.data.toLowerCase();
      if (text.length !== node.length) continue; // a letter has another length in lower case
      for (const part of parts)
        for (let at = text.indexOf(part); at >= 0 && marks.size < 1000; at = text.indexOf(part, at + part.length))
          marks.add(rangeOf(node, at, at + part.length));
    }
  }
  CSS.highlights.set("found", marks);
}

function show(fact, output) {
  const [shown, parts] = fact ? holding(fact) : [pages, []];
  for (const page of pages) {
    page.hidden = !shown.includes(page);
    page.open = fact !== "" && shown.slice(0, 3).includes(page);
  }
  mark(fact ? shown : [], parts);
  const more = shown.length > 8 ? ", …" : "";
  const names = shown.slice(0, 8).map((page) => page.id.replace("page-", "#")).join(", ");
  const it = parts.length > 1 ? "all of these words, not side by side" : "it";
  const found = `${shown.length} of ${pages.length} pages ${shown.length > 1 ? "have" : "has"} ${it}: ${names}${more}`;
  output.value = !fact ? "" : shown.length ? found : "No page of this file has it.";
}

if (pages.length) {
  const find = document.querySelector("#pages .find");
  const [field, output] = [find.querySelector("input"), find.querySelector("output")];
  find.hidden = false;
  field.addEventListener("input", () => show(plain(field.value), output));
  addEventListener("hashchange", () => {
    const page = document.querySelector(location.hash || "#none")?.closest("#pages > details");
    if (!page) return;
    field.value = "";
    show("", output);
    page.open = true;
    page.scrollIntoView();
  });
}
