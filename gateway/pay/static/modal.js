// For a merchant's own page: shows a payment above it, in a frame, in place of leaving for it.
//
//   <script src="https://pay.example/pay-modal.js" defer></script>
//   <a href="PAYMENT_LINK" data-fiatgate>Pay</a>
//
// The merchant's origin must be among its frame origins (fiatgate merchants set ID --frame-origins). Where it is not, or
// where scripts do not run, the link is a link. When the payment has ended, the link gets the event "fiatgate:finished"
// with { status, returnUrl } in its detail; unless that is prevented, the customer goes to returnUrl.
(() => {
  function open(link) {
    const dialog = document.createElement("dialog");
    const frame = document.createElement("iframe");
    const close = document.createElement("button");
    const origin = new URL(link.href).origin;
    dialog.style.cssText = "border:0;padding:0;border-radius:16px;width:min(30rem,100vw);height:min(48rem,96vh);overflow:hidden";
    frame.style.cssText = "border:0;width:100%;height:100%;display:block";
    close.style.cssText = "position:absolute;inset-block-start:.5rem;inset-inline-end:.5rem;width:2.5rem;height:2.5rem;border:0;border-radius:50%;font-size:1.25rem;cursor:pointer";
    frame.src = link.href;
    frame.title = link.dataset.title || link.textContent.trim() || "Payment";
    frame.allow = "clipboard-write";
    close.type = "button";
    close.textContent = "\u00d7";
    close.setAttribute("aria-label", link.dataset.close || "Close");
    close.addEventListener("click", () => dialog.close());
    const hear = (event) => {
      if (event.origin !== origin || event.source !== frame.contentWindow) return;
      if (!event.data || event.data.fiatgate !== "finished") return;
      const { status, returnUrl } = event.data;
      const told = new CustomEvent("fiatgate:finished", { bubbles: true, cancelable: true, detail: { status, returnUrl } });
      if (link.dispatchEvent(told) && /^https?:/.test(returnUrl || "")) location.assign(returnUrl);
    };
    window.addEventListener("message", hear);
    dialog.addEventListener("close", () => {
      window.removeEventListener("message", hear);
      dialog.remove();
      link.focus();
    });
    dialog.append(frame, close);
    document.body.append(dialog);
    dialog.showModal();
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-fiatgate]");
    if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
    if (!("showModal" in document.createElement("dialog"))) return;
    event.preventDefault();
    open(link);
  });
})();
