"use strict";
{
  // Everything here works without script too: forms post, links lead on, waiting pages refresh.
  const RENEWALS = 5, LIVES = 20;  // how often a price is renewed unasked, and which (seconds) at all
  const AWAY = "checkout.away", KEPT = "checkout.wallets", KEPT_MAX = 5, SLOW = 10, PATIENCE = 35;  // seconds
  const TOLD = [19, 10, 5];  // seconds before the shop opens, said to who cannot see them
  const CLOSELY = 3, CLOSELY_FOR = 20, OFTEN = 10, SELDOM = 30;  // seconds: how often to ask: until a page in sight is untouched for so long, then, and if it is crowded
  const PAUSES = [2, 4, 8];  // seconds, before a crowded gateway is asked again
  const main = document.querySelector("main");
  const find = selector => main.querySelector(selector);
  let timers = [], turn = 0;  // a turn ends when the main part is replaced, or a form is sent
  let left = false, renewals = 0, touched;
  const later = (what, seconds) => { const timer = setTimeout(what, seconds * 1000); timers.push(timer); return timer; };
  const say = text => { find("[role=status]").textContent = text; };
  const news = text => { main.classList.add("told"); say(text); };  // while busy, what the spinner does not say
  const bare = () => location.pathname.replace(/\/(success|wallet|details|grant\/callback)$/, "");
  // Blanks inside an address come from copying it; of what is none nothing is taken away.
  const tidied = typed => {
    const text = typed.replace(/[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]+/g, "").trim();
    return text.includes("/") ? text.replace(/\s+/g, "") : text;
  };

  // Follow the session: expiry, cancellation and completion, also by another tab. Silent while hidden.
  function follow() {
    const { poll, state, home, pace, till } = main.dataset;
    document.onvisibilitychange = ononline = null;
    touched = () => {};
    if (!poll) return;
    const mine = turn;
    let asked = Date.now(), since = asked, wait = Number(pace), timer;
    const paying = till || !state.includes(",,");  // money is under way, or somebody waits with goods in hand
    const plan = at => { clearTimeout(timer); timer = later(ask, (at - Date.now()) / 1000); };
    plan(asked + wait * 1000);
    async function ask() {
      clearTimeout(timer);  // a hand may be quicker
      if (document.hidden) return;
      let crowded = false;
      asked = Date.now();
      try {
        const answer = await fetch(poll, { headers: { accept: "application/json" }, cache: "no-store" });
        crowded = answer.status === 429;
        if (answer.ok) {
          const now = await answer.json();
          if (mine !== turn) return;
          const there = now.next && !till ? new URL(now.next, location).pathname : null;
          if (till) say("");
          if ([now.status, now.progress, now.part].join() !== state || (there && there !== home)) { location.replace(there || bare()); return; }
          const fence = find(".fence");
          if (fence) {
            fence.hidden = now.seconds_left === null;
            for (const ring of fence.getAnimations()) ring.currentTime = ring.effect.getTiming().duration - now.seconds_left * 1000;
          }
        }
      } catch { if (till) say(main.dataset.offline); }  // the next try may succeed
      if (mine !== turn) return;
      const most = crowded ? SELDOM : paying || Date.now() - since < CLOSELY_FOR * 1000 ? CLOSELY : OFTEN;
      wait = Math.min(wait * (crowded ? 3 : 1.5), most);
      if (crowded) asked = Date.now() + wait * 1000;  // no hand is quicker then
      plan(Date.now() + wait * 1000);
    }
    touched = () => {
      since = Date.now();
      if (mine === turn) plan(Math.max(since, asked + CLOSELY * 1000));
    };
    document.onvisibilitychange = ononline = () => {
      clearTimeout(timer);
      wait = Number(pace);
      since = Date.now();
      if (!document.hidden) ask();
    };
  }

  // A form's answer is a page of ours: its main part takes the place of this one.
  async function send(form, unasked) {
    const field = form.querySelector("#wallet_address"), remembers = form.querySelector("[id^=remember]")?.checked;
    if (field) field.value = tidied(field.value);
    const body = new URLSearchParams(new FormData(form));
    const buttons = main.querySelectorAll("form button"), steps = find(".steps")?.innerHTML;
    buttons.forEach(button => { button.disabled = true; });
    stop();
    if (!unasked) {
      left = false;
      store(() => localStorage.removeItem(AWAY));
      main.querySelectorAll(".steps li").forEach((step, at) => {
        step.className = at < 1 ? "done" : "";
        if (at === 1) step.ariaCurrent = "step"; else step.removeAttribute("aria-current");
      });
      main.classList.add("busy");
      say(form.dataset.busy);
      later(() => news(form.dataset.slow), SLOW);
    }
    let answer;
    try {
      answer = await post(form.action, body);
      show(await answer.text(), answer, unasked);
      const wallet = find("#again [name=wallet_address]")?.value;  // as its provider writes it
      if (remembers && answer.ok && wallet) keep([wallet, ...kept()]);
    } catch {
      buttons.forEach(button => { button.disabled = false; });
      if (steps) find(".steps").innerHTML = steps;
      start();
      say(answer && crowded(answer) ? main.dataset.over : main.dataset.offline);
    }
    main.classList.remove("busy", "told");
  }
  // The gateway's own 429 is no page of ours, and nothing was done: ask again, at another time than the others.
  const crowded = answer => answer.status === 429 && !/html/.test(answer.headers.get("content-type"));
  async function post(action, body) {
    for (let tries = 0; ; tries++) {
      const signal = AbortSignal.timeout(PATIENCE * 1000);
      const headers = { accept: "text/html", prefer: "return=representation" };  // the page, not the way to it
      const answer = await fetch(action, { method: "POST", body, headers, signal });
      if (!crowded(answer) || tries === PAUSES.length) return answer;
      stop();
      news(main.dataset.crowded);
      const pause = Number(answer.headers.get("retry-after")) || PAUSES[tries];
      await new Promise(done => setTimeout(done, Math.min(pause, 30) * (1 + Math.random() / 2) * 1000));
    }
  }
  function show(html, answer, unasked) {
    // Only what is used is parsed: the policy would report the other page's style, whose nonce is not ours.
    const part = (from, to) => html.slice(html.indexOf(from), html.indexOf(to) + to.length);
    const page = new DOMParser().parseFromString(part("<title>", "</title>") + part("<main", "</main>"), "text/html");
    const fresh = page.querySelector("main"), status = find("[role=status]"), focused = document.activeElement.id;
    if (!fresh) throw new Error("not a page of ours");
    fresh.querySelectorAll("noscript").forEach(each => each.remove());  // the parser has read it as if there were no script
    const at = answer.redirected ? new URL(answer.url).pathname : answer.ok && bare();
    if (at) history.replaceState(null, "", at);
    document.title = page.title;
    for (const name of Object.keys(main.dataset)) delete main.dataset[name];
    Object.assign(main.dataset, fresh.dataset);
    fresh.querySelector("[role=status]")?.replaceWith(status);  // the same element goes on being live
    main.replaceChildren(...fresh.childNodes);
    status.textContent = "";
    if (!unasked) {
      scrollTo(0, 0);
      (find("[aria-invalid]") || find("h1")).focus();
    } else {
      if (focused) document.getElementById(focused)?.focus();
      const change = find("#change");
      if (change) { say(change.textContent); change.remove(); }
    }
    start();
  }

  // How long the price holds. Then it is renewed, unless the customer is typing, or may be approving
  // it at the wallet: in another window, or on a phone that was shown the QR code. A new price ends
  // the approval of the old one.
  function price() {
    const place = find("[data-left]");
    if (!place) return;
    const lives = Number(place.dataset.left), until = Date.now() + lives * 1000;
    (function count() {
      const seconds = Math.ceil((until - Date.now()) / 1000);
      if (seconds < 1) { renew(lives, place); return; }
      if (seconds < 3600) {
        const time = Math.floor(seconds / 60) + ":" + String(seconds % 60).padStart(2, "0");
        place.textContent = place.dataset.text.replace("{}", time);
      }
      later(count, 1);
    })();
  }
  function renew(lives, place) {
    const form = find("#again"), fields = [...main.querySelectorAll("input:not([type=checkbox])")];
    place.textContent = place.dataset.over;
    if (fields.some(field => field.value !== field.defaultValue)) return;
    if (form && !elsewhere() && !document.hidden && lives >= LIVES && renewals < RENEWALS) {
      renewals++;
      send(form, true);
    } else location.replace(bare());
  }

  // Tell a customer who comes back with the browser's back button how to continue.
  function leave() {
    const link = find("#leave");
    if (!link) return;
    const gone = () => { away(); store(() => sessionStorage.setItem("left", location.pathname)); };
    link.onclick = link.onauxclick = gone;
    find("#came-back").hidden = store(() => sessionStorage.getItem("left")) !== location.pathname;
  }

  function handOver() {
    const code = find(".phone");
    if (!code) return;
    // A click is told at once, before the code can be scanned; `toggle` comes later, and also where the browser opens it.
    code.ontoggle = () => { if (code.open) away(); };
    code.querySelector("summary").onclick = away;
  }
  const away = () => { left = true; store(() => localStorage.setItem(AWAY, bare())); };
  const elsewhere = () => left || store(() => localStorage.getItem(AWAY)) === bare();

  // Addresses stay in this browser, if the customer wants that, and can be forgotten one by one.
  function remember() {
    const boxes = main.querySelectorAll("[id^=remember]"), known = find("#kept"), wallets = kept();
    for (const box of boxes) {
      box.closest("p").hidden = false;
      box.checked = wallets.length > 0;
      box.onchange = () => boxes.forEach(each => { each.checked = box.checked; });
    }
    if (!known) return;
    known.hidden = !wallets.length;
    known.querySelector("ul").replaceChildren(...wallets.map(wallet => {
      const row = document.createElement("li"), pay = document.createElement("button"), forget = document.createElement("button");
      pay.type = forget.type = "button";
      pay.className = "quiet";
      pay.textContent = wallet.replace("https://", "");
      pay.onclick = () => {
        const field = find("#wallet_address"), way = find("#typed");
        if (way) way.open = true;
        field.value = wallet;
        field.form.requestSubmit();
      };
      forget.className = "link";
      forget.textContent = known.dataset.forget;
      forget.ariaLabel = `${known.dataset.forget}: ${pay.textContent}`;
      forget.onclick = () => { keep(kept().filter(each => each !== wallet)); remember(); (find("#kept button") || find("h1")).focus(); };
      row.append(pay, forget);
      return row;
    }));
  }
  const kept = () => {
    const found = store(() => JSON.parse(localStorage.getItem(KEPT) || "[]"));
    return Array.isArray(found) ? found.filter(each => typeof each === "string" && each.startsWith("https://")) : [];
  };
  const keep = wallets => store(() => localStorage.setItem(KEPT, JSON.stringify([...new Set(wallets)].slice(0, KEPT_MAX))));
  function store(use) {
    try { return use(); } catch { return null; }  // a browser may refuse to keep anything
  }

  // On to the shop, unless the customer stays: announced from the start, and not while nobody looks.
  function countdown() {
    const place = find("[data-countdown]");
    if (!place) return;
    const stay = find("#stay"), mail = find("#mail"), status = find("[role=status]"), texts = place.dataset.texts.split("\n");
    let seconds = Number(place.dataset.countdown), stayed = false;
    stay.hidden = false;
    status.classList.add("unseen");  // the line below shows it
    find("h1").focus();
    const halt = () => { say(""); stayed = true; stay.hidden = true; place.textContent = place.dataset.stayed; };
    stay.onclick = () => { halt(); place.tabIndex = -1; place.focus(); };
    if (mail) mail.ontoggle = halt;
    (function count() {
      if (stayed) return;
      if (document.hidden) { later(count, 1); return; }
      if (seconds < 1) { location.assign(find("#continue").href); return; }
      place.textContent = texts[--seconds];
      if (TOLD.includes(seconds + 1)) say(place.textContent);
      later(count, 1);
    })();
  }

  function dress() {
    const receipt = find("#print");
    if (receipt) {
      receipt.hidden = false;
      receipt.onclick = () => {
        const title = document.title;
        document.title = receipt.dataset.title;  // also the name of a file that it is saved as
        print();
        document.title = title;
      };
    }
    for (const button of main.querySelectorAll(".copy")) {
      button.hidden = !navigator.clipboard;
      button.textContent = button.dataset.text;
      button.onclick = async () => {
        await navigator.clipboard.writeText(button.dataset.copy);
        button.textContent = button.dataset.done;
      };
    }
    const told = style => new Intl.DateTimeFormat(document.documentElement.lang + "-u-nu-latn", style);
    const date = told({ dateStyle: "long", timeStyle: "short" }), clock = told({ timeStyle: "medium" }), minute = told({ timeStyle: "short" });
    for (const time of main.querySelectorAll("time")) time.textContent = (time.closest(".course") ? clock : time.closest(".until") ? minute : date).format(new Date(time.dateTime));
  }

  const stop = () => { timers.forEach(clearTimeout); timers = []; turn++; };
  function start() {
    stop();
    for (const form of main.querySelectorAll("form:not([data-plain])")) form.onsubmit = event => { event.preventDefault(); send(form); };
    if (main.dataset.slow) later(() => say(main.dataset.slow), SLOW);
    [follow, price, leave, handOver, remember, countdown, dress].forEach(part => part());
  }
  start();
  // A hand at the page relies on what it says: ask at once, unless that was just done.
  for (const sign of ["pointerdown", "keydown", "scroll", "focus"]) addEventListener(sign, () => touched(), { passive: true });
  // A page that comes back by the browser's history shows what was; ask what is.
  addEventListener("pageshow", event => { if (event.persisted) location.reload(); });
}
