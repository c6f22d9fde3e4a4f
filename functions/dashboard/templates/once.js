// The forms of a page that "Back" shows again keep their name, so that a form that was sent is known.
// A second press within a second would leave the first answer, which may show a secret, unseen.
{
  const names = document.getElementsByName("form_name"), kept = history.state?.form;
  let sent = -1000;
  if (kept) for (const each of names) each.value = kept;
  else history.replaceState({ form: names[0].value }, "");
  addEventListener("submit", (event) => {
    if (event.timeStamp - sent < 1000) event.preventDefault();
    else sent = event.timeStamp;
  });
}
