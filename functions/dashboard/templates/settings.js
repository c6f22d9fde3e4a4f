"use strict";
{
  // Show the typed settings, a moment after the last key.
  const frame = document.getElementById("preview"), form = document.getElementById("looks");
  const color = form.elements.accent_color, usual = form.elements.usual;
  let soon;
  function show() {
    const typed = new URLSearchParams(new FormData(form));
    typed.delete("form_token");
    frame.contentWindow.location.replace(`${frame.dataset.base}?${typed}`);
  }
  document.getElementById("saved-only").textContent = "It follows what you type. Save to keep the changes.";
  // Report a picture that is too large before it is sent.
  const logo = document.getElementById("logo");
  logo.addEventListener("change", () => {
    const large = logo.files.length > 0 && logo.files[0].size > Number(logo.dataset.max);
    logo.setCustomValidity(large ? logo.dataset.tooLarge : "");
    logo.reportValidity();
  });
  color.addEventListener("input", () => { usual.checked = false; });
  form.addEventListener("input", () => { clearTimeout(soon); soon = setTimeout(show, 250); });
}
