"use strict";
{
  // Copy the code of a block.
  for (const block of document.querySelectorAll("pre")) {
    const button = document.createElement("button"), place = block.parentElement;
    const title = place.querySelector("figcaption, summary").textContent;
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy: ${title}`);
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    block.before(button);
  }
  // Search the headings, fields and errors of the page.
  const MOST = 20, input = document.getElementById("find"), list = document.getElementById("found");
  const places = [];
  for (const each of document.querySelectorAll("main h2, main h3, .address code, .fields code:first-child, dt code")) {
    const home = each.closest("dl [id], article, section"), title = home.querySelector("h2, h3, dt code").textContent;
    const text = each.textContent;
    places.push({ text, where: title === text ? "" : title, id: home.id });
  }
  input.closest("[hidden]").hidden = false;
  input.addEventListener("input", () => {
    const typed = input.value.trim().toLowerCase();
    const fits = typed ? places.filter((each) => each.text.toLowerCase().includes(typed)) : [];
    const shown = fits.slice(0, MOST).map(({ text, where, id }) => {
      const item = document.createElement("li"), link = document.createElement("a");
      link.href = `#${id}`;
      link.textContent = text;
      item.append(link, where ? ` in ${where}` : "");
      return item;
    });
    if (typed && !fits.length) shown.push("Nothing found.");
    if (fits.length > MOST) shown.push(`And ${fits.length - MOST} more.`);
    list.replaceChildren(...shown);
  });
}
