"use strict";
{
  // Escape folds what lies over the page, "More" and "Filters". A press beside "More" folds it, too.
  const more = document.querySelector(".more"), over = [more, ...document.querySelectorAll(".find details")];
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const each of over.filter((one) => one.open)) {
      const inside = each.contains(document.activeElement);
      each.open = false;
      if (inside) each.querySelector("summary").focus();
    }
  });
  document.addEventListener("click", (event) => { if (!more.contains(event.target)) more.open = false; });
}
{
  // Show times in the reader's zone. Each has its UTC as a title, and the button shows all in UTC.
  const note = document.getElementById("zone"), times = [...document.querySelectorAll("time")];
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const format = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" });
  const utc = times.map((time) => time.textContent.replace(/ UTC$/, ""));
  const button = document.createElement("button");
  let local = false;
  function show() {
    local = !local;
    times.forEach((time, place) => {
      time.textContent = local ? format.format(new Date(time.dateTime)) : utc[place];
      time.title = `${utc[place]} UTC`;
    });
    note.firstChild.data = local ? `Times are of your zone, ${zone}. ` : "Times are UTC. ";
    button.textContent = local ? "Show UTC" : "Show your zone";
  }
  if (!times.length) note.hidden = true;
  else if (zone && zone !== "UTC") {
    button.type = "button";
    button.className = "quiet";
    button.addEventListener("click", show);
    note.append(button);
    show();
  }
}
