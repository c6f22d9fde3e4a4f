// Make a dialog of each question before something that cannot be undone (ask.html).
document.querySelectorAll("details.ask").forEach((asked, number) => {
  const summary = asked.querySelector("summary"), title = asked.querySelector("h2");
  const open = document.createElement("button"), dialog = document.createElement("dialog"), back = document.createElement("button");
  open.type = back.type = "button";
  open.className = "quiet";
  open.ariaHasPopup = "dialog";
  open.append(...summary.childNodes);
  if (summary.ariaLabel) open.ariaLabel = summary.ariaLabel;
  summary.remove();
  title.id = `asked-${number}`;
  dialog.setAttribute("aria-labelledby", title.id);
  back.className = "quiet back";
  back.textContent = "Go back";
  // Nothing is pressed by an Enter too many: the way back has the focus where nothing is to be typed.
  back.autofocus = !asked.querySelector("input:not([type=hidden]), select, textarea");
  dialog.append(...asked.childNodes);
  const row = [...dialog.querySelectorAll(".buttons, form > button")].pop();
  if (row && row.matches("button")) row.after(back);
  else (row || dialog).append(back);
  open.addEventListener("click", () => dialog.showModal());
  back.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  const opened = asked.open;
  asked.replaceWith(open, dialog);
  if (opened) dialog.showModal();
});
