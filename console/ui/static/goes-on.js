// Sends the next part of a list until the list ends or the person stops. Without scripts the person presses each time.
const form = document.querySelector("form[data-goes-on]");
if (form) setTimeout(() => form.requestSubmit(form.querySelector("[name=every]")), 1000);
