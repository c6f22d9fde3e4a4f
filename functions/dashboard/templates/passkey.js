"use strict";
{
  // The form of a passkey: fetch the options, ask the device, send what it answers as a form.
  const form = document.getElementById("passkey"), says = document.getElementById("passkey-says");
  const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (sign) => sign.charCodeAt(0));
  const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  const parts = ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"];
  async function asked() {
    const fields = new URLSearchParams(new FormData(form));
    const answer = await fetch(form.dataset.options, { method: "POST", body: fields });
    if (!answer.ok) throw new Error(answer.status === 429 ? "Too many attempts. Try again in a minute." : "Reload this page and try again.");
    const publicKey = await answer.json();
    publicKey.challenge = bytes(publicKey.challenge);
    if (publicKey.user) publicKey.user.id = bytes(publicKey.user.id);
    const made = await navigator.credentials[form.dataset.use]({ publicKey });
    const response = {};
    for (const part of parts) if (made.response[part]) response[part] = text(made.response[part]);
    return JSON.stringify({ id: made.id, rawId: made.id, type: made.type, response });
  }
  if (window.PublicKeyCredential) {
    form.hidden = false;
    form.querySelector("button").disabled = false;
    document.getElementById("passkey-none")?.remove();
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const button = form.querySelector("button");
      button.disabled = true;
      try {
        form.elements.credential.value = await asked();
        form.submit();
      } catch (error) {
        says.textContent = error.name === "NotAllowedError" ? "It was canceled, or took too long. Try again." : error.message;
        says.hidden = false;
        button.disabled = false;
      }
    });
  }
}
