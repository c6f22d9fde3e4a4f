"use strict";
{
  // Fetch the parts one after the other, and save them as one file.
  const all = document.getElementById("all"), status = all.querySelector("[role=status]");
  const buttons = [...all.querySelectorAll("button")];
  all.hidden = false;
  async function download(file) {
    const parts = [];
    let cursor = "", count = 0;
    do {
      const query = new URLSearchParams(all.dataset.all);
      if (cursor) { query.set("cursor", cursor); query.set("append", "1"); }
      const answer = await fetch(`${all.dataset.base}${file}.csv?${query}`, { cache: "no-store" });
      if (!answer.ok || answer.redirected) throw new Error();
      parts.push(await answer.text());
      count += Number(answer.headers.get("export-count"));
      cursor = answer.headers.get("export-next");
      status.textContent = `${count} transactions so far…`;
    } while (cursor);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(parts, { type: "text/csv" }));
    link.download = `${file}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    status.textContent = `${count} transactions downloaded.`;
  }
  for (const button of buttons) {
    button.addEventListener("click", async () => {
      for (const each of buttons) each.disabled = true;
      try { await download(button.dataset.file); }
      catch { status.textContent = "The download was interrupted. Reload the page and try again."; }
      for (const each of buttons) each.disabled = false;
    });
  }
}
