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
  // Show times in the reader's zone, and in lists (.near) how long ago. Each has the exact time as a
  // title, and the button shows all in UTC.
  const note = document.getElementById("zone"), times = [...document.querySelectorAll("time")];
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const words = (more) => new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", ...more });
  const date = { day: "numeric", month: "short" }, year = { ...date, year: "numeric" };
  const exact = words({ ...year, second: "2-digit" }), clock = words({});
  const utc = times.map((time) => time.textContent.replace(/ UTC$/, ""));
  const button = document.createElement("button");
  let local = true;
  function near(at) {
    const now = new Date(), minutes = Math.floor((now - at) / 60000);
    const days = Math.round((new Date(now).setHours(0, 0, 0, 0) - new Date(at).setHours(0, 0, 0, 0)) / 86400000);
    if (minutes >= 0 && minutes < 60) return minutes ? `${minutes} min ago` : "just now";
    if (minutes >= 0 && days < 2) return `${days ? "yesterday" : "today"} ${clock.format(at)}`;
    return words(at.getFullYear() === now.getFullYear() ? date : year).format(at);
  }
  function show() {
    times.forEach((time, place) => {
      const at = new Date(time.dateTime), short = time.closest(".near");
      time.textContent = !local ? utc[place] : short ? near(at) : exact.format(at);
      time.title = local && short && zone !== "UTC" ? `${exact.format(at)}, in UTC ${utc[place]}` : `${utc[place]} UTC`;
    });
    if (zone === "UTC") return;
    note.firstChild.data = local ? `Times are of your zone, ${zone}. ` : "Times are UTC. ";
    button.textContent = local ? "Show UTC" : "Show your zone";
  }
  if (!times.length) note.hidden = true;
  else if (zone) {
    button.type = "button";
    button.className = "quiet";
    button.addEventListener("click", () => { local = !local; show(); });
    if (zone !== "UTC") note.append(button);
    show();
    setInterval(show, 60000); // "1 minute ago" is true for a minute
  }
}
