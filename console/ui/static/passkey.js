// Passkeys: the only thing of the console that needs a script. A form with `data-passkey` gets its challenge from that
// address; the answer of the authenticator is sent with the form's other fields.
const can = window.PublicKeyCredential?.parseRequestOptionsFromJSON !== undefined;

async function challenge(address) {
  const answer = await fetch(address, { method: "POST", headers: { "Content-Type": "application/x-www-form-urlencoded" } });
  if (!answer.ok) throw new Error(answer.status);
  return answer.json();
}

async function credential(form, options) {
  if (form.dataset.new === undefined)
    return navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) });
  return navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) });
}

for (const form of document.querySelectorAll("form[data-passkey]")) {
  form.hidden = !can;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const [button, failure] = [form.querySelector("button"), form.querySelector("[data-failure]")];
    button.setAttribute("aria-busy", "true");
    for (const each of form.querySelectorAll("[role=alert]")) each.hidden = true;
    try {
      const { challenge_id: id, options, go } = await challenge(form.dataset.passkey);
      if (go) return location.assign(go); // a step-up first
      const made = await credential(form, options.publicKey ?? options);
      const [challengeField, credentialField] = (form.dataset.names ?? "challenge_id credential").split(" ");
      form.elements[challengeField].value = id;
      form.elements[credentialField].value = JSON.stringify(made.toJSON());
      form.submit();
    } catch (error) {
      const known = error.name === "InvalidStateError" && form.querySelector("[data-known]");
      (known || failure).hidden = false;
      button.removeAttribute("aria-busy");
    }
  });
}
for (const each of document.querySelectorAll("[data-without-passkey]")) each.hidden = can;
for (const each of document.querySelectorAll("[data-print]")) {
  each.hidden = false;
  each.addEventListener("click", () => print());
}
