"use strict";
{
  // Show the typed settings, a moment after the last key.
  const frame = document.getElementById("preview"), form = document.getElementById("settings");
  const color = form.elements.accent_color, usual = form.elements.usual;
  let soon;
  function show() {
    const typed = new FormData(form), looks = new URLSearchParams();
    for (const name of ["name", "accent_color", "usual", "locale"])
      if (typed.has(name)) looks.set(name, typed.get(name));
    frame.contentWindow.location.replace(`${frame.dataset.base}?${looks}`);
  }
  document.getElementById("saved-only").textContent = "It follows what you type. Save to keep the changes.";
  // Make a picture that is too large small. One that cannot be read is reported before it is sent.
  const logo = document.getElementById("logo"), hint = document.getElementById("logo-hint");
  hint.textContent = "PNG, JPEG or WebP; a large image is made small. A square one looks best.";
  async function smaller(file) {
    const picture = await createImageBitmap(file);
    for (const side of [256, 192, 128, 96, 64]) {
      const scale = Math.min(1, side / Math.max(picture.width, picture.height));
      const canvas = new OffscreenCanvas(Math.max(1, picture.width * scale), Math.max(1, picture.height * scale));
      canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
      const made = await canvas.convertToBlob({ type: "image/png" });
      if (made.size <= Number(logo.dataset.max)) return new File([made], "logo.png", { type: "image/png" });
    }
    throw new RangeError(logo.dataset.tooLarge);
  }
  logo.addEventListener("change", async () => {
    const [file] = logo.files;
    logo.setCustomValidity("");
    if (!file || file.size <= Number(logo.dataset.max)) return;
    logo.setCustomValidity(logo.dataset.tooLarge); // until it is small
    try {
      const kept = new DataTransfer();
      kept.items.add(await smaller(file));
      logo.files = kept.files;
      logo.setCustomValidity("");
    } catch {
      logo.reportValidity();
    }
  });
  // Name the changes that are not saved.
  const bar = document.getElementById("save");
  function changed(field) {
    if (field.type === "checkbox") return field.checked !== field.defaultChecked;
    if (field.options) return [...field.options].some((each) => each.selected !== each.defaultSelected);
    return field.value !== field.defaultValue;
  }
  function called(field) {
    const row = field.closest("[data-called]");
    return row ? row.dataset.called : field.labels[0].textContent.trim();
  }
  function tell() {
    const fields = [...form.elements].filter((each) => each.labels && each.labels.length && each.type !== "submit");
    const names = [...new Set(fields.filter(changed).map(called))], many = names.length;
    const words = many === 1 ? bar.dataset.one : bar.dataset.more.replace("{n}", many);
    document.getElementById("unsaved").textContent = many ? `${words}: ${names.join(", ")}` : "";
    bar.classList.toggle("open", many > 0);
    bar.querySelector("[type=reset]").hidden = !many;
  }
  if (bar) {
    form.addEventListener("input", tell);
    form.addEventListener("reset", () => setTimeout(() => { logo.setCustomValidity(""); tell(); show(); }));
  }
  color.addEventListener("input", () => { usual.checked = false; });
  form.addEventListener("input", () => { clearTimeout(soon); soon = setTimeout(show, 250); });
}
