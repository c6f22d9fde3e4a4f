"use strict";
{
  // Everything here works without script too: forms post, links lead on, waiting pages refresh.
  const main = document.querySelector("main");
  let timers = [], turn = 0;  // a turn ends when the main part is replaced, or a form is sent
  const later = (what, seconds) => timers.push(setTimeout(what, seconds * 1000));

  // Follow the session: expiry, cancellation and completion, also by another tab. Silent while hidden.
  function follow() {
    const { poll, status, home, pace } = main.dataset;
    if (!poll) return;
    const mine = turn;
    let wait = Number(pace), due = false;
    async function ask() {
      if (document.hidden) { due = true; return; }
      try {
        const answer = await fetch(poll, { headers: { accept: "application/json" }, cache: "no-store" });
        if (answer.ok) {
          const now = await answer.json();
          if (mine !== turn) return;
          const next = now.next ? new URL(now.next, location).pathname : null;
          if (now.status !== status || (next && next !== home)) {
            location.replace(next || location.pathname.replace(/\/(success|wallet|grant\/callback)$/, ""));
            return;
          }
        }
      } catch { /* the next try may succeed */ }
      if (mine !== turn) return;
      wait = Math.min(wait * 1.5, 30);
      later(ask, wait);
    }
    document.onvisibilitychange = () => { if (!document.hidden && due) { due = false; ask(); } };
    later(ask, wait);
  }

  // A form's answer is a page of ours: its main part takes the place of this one.
  async function send(event) {
    event.preventDefault();
    const form = event.target;
    const buttons = main.querySelectorAll("form button");
    const status = main.querySelector("[role=status]");
    const body = new URLSearchParams(new FormData(form));
    buttons.forEach(button => { button.disabled = true; });
    status.textContent = form.dataset.busy;
    stop();
    try {
      const answer = await fetch(form.action, { method: "POST", body, headers: { accept: "text/html" } });
      show(await answer.text(), answer);
    } catch {
      buttons.forEach(button => { button.disabled = false; });
      start();
      status.textContent = main.dataset.offline;
    }
  }
  function show(html, answer) {
    // Only what is used is parsed: the policy would report the other page's style, whose nonce is not ours.
    const part = (from, to) => html.slice(html.indexOf(from), html.indexOf(to) + to.length);
    const page = new DOMParser().parseFromString(part("<title>", "</title>") + part("<main", "</main>"), "text/html");
    const fresh = page.querySelector("main");
    if (!fresh) throw new Error("not a page of ours");
    if (answer.redirected) history.replaceState(null, "", answer.url);
    document.title = page.title;
    for (const name of Object.keys(main.dataset)) delete main.dataset[name];
    Object.assign(main.dataset, fresh.dataset);
    main.replaceChildren(...fresh.childNodes);
    scrollTo(0, 0);
    (main.querySelector("[aria-invalid]") || main.querySelector("h1")).focus();
    start();
  }

  // How long the price holds; then the page says that it has run out.
  function tick() {
    const left = main.querySelector("[data-left]");
    if (!left) return;
    const until = Date.parse(left.querySelector("time").dateTime);
    if (until <= Date.now()) return;  // the two clocks disagree
    const place = left.querySelector("small") || left.appendChild(document.createElement("small"));
    (function count() {
      const seconds = Math.round((until - Date.now()) / 1000);
      if (seconds < -1) { location.replace(main.dataset.home); return; }
      const time = Math.floor(seconds / 60) + ":" + String(seconds % 60).padStart(2, "0");
      place.textContent = seconds > 0 && seconds < 3600 ? " " + left.dataset.left.replace("{}", time) : "";
      later(count, 1);
    })();
  }

  // On to the shop, unless the customer stays.
  function countdown() {
    const place = main.querySelector("[data-countdown]");
    if (!place) return;
    const stay = main.querySelector("#stay");
    let seconds = Number(place.dataset.countdown), stayed = false;
    stay.hidden = false;
    stay.onclick = () => { stayed = true; stay.hidden = true; place.textContent = place.dataset.stayed; place.tabIndex = -1; place.focus(); };
    (function count() {
      if (stayed) return;
      if (seconds < 1) { location.assign(main.querySelector("#continue").href); return; }
      place.textContent = place.dataset.text.replace("{}", seconds--);
      later(count, 1);
    })();
  }

  const stop = () => { timers.forEach(clearTimeout); timers = []; turn++; };
  function start() {
    stop();
    for (const form of main.querySelectorAll("form")) form.onsubmit = send;
    follow();
    tick();
    countdown();
  }
  start();
  // A page that comes back by the browser's history shows what was; ask what is.
  addEventListener("pageshow", event => { if (event.persisted) location.reload(); });
}
