"use strict";
{
  // The fields of an address follow its country at once; the button does this where there is no script.
  const PAUSE = 200;  // milliseconds, in which a browser that fills in the form goes on
  const FIXED = "legend, [for$=_country], [name$=_country], [name=turn]";
  const buttons = document.querySelectorAll("[name=turn]");
  let asked = 0;

  async function turn(country) {
    const { form } = country, mine = ++asked;
    await new Promise(done => setTimeout(done, PAUSE));
    if (mine !== asked) return;
    const body = new URLSearchParams(new FormData(form));
    body.set("turn", country.name.replace("_country", ""));
    try {
      const answer = await fetch(form.action, { method: "POST", body, headers: { accept: "text/html" } });
      const html = await answer.text();
      if (mine !== asked) return;
      // The rest is not parsed: the policy would report the other page's style, whose nonce is not ours.
      const page = new DOMParser().parseFromString(html.slice(html.indexOf("<main"), html.indexOf("</main>")), "text/html");
      for (const old of form.querySelectorAll("[name$=_form]")) follow(old, page.querySelector(`[name=${old.name}]`));
    } catch {
      for (const button of buttons) button.hidden = false;
    }
  }
  function follow(old, now) {
    if (old.value === now.value) return;
    const part = old.closest("fieldset"), fresh = now.closest("fieldset");
    for (const field of fresh.querySelectorAll("input:not([type=hidden])")) {
      const typed = part.querySelector(`[name=${field.name}]`);  // perhaps since the form was sent
      if (typed) field.value = typed.value;
    }
    for (const each of [...part.children]) if (!each.matches(FIXED)) each.remove();
    part.append(...[...fresh.children].filter(each => !each.matches(FIXED)));
  }

  for (const button of buttons) button.hidden = true;
  document.addEventListener("change", event => { if (event.target.matches("select[name$=_country]")) turn(event.target); });
  // A country that was chosen before the page left, or before this script ran.
  addEventListener("pageshow", () => {
    for (const { form: { elements }, value } of buttons) {
      if (elements[`${value}_country`].value !== elements[`${value}_form`].value) turn(elements[`${value}_country`]);
    }
  });
}
