// What makes the page smoother where scripts run. Nothing here is needed: every step is a plain link or form.
import { startCopying } from "./copy.js";
import { startCountdowns } from "./countdown.js";
import { startForms } from "./forms.js";
import { startLive } from "./live.js";
import { startReturn } from "./return.js";
import { localTimes } from "./times.js";

function begin(root) {
  localTimes(root);
  startCopying(root);
  startCountdowns(root);
  startForms(root);
  startReturn(root);
}

document.documentElement.classList.add("scripted");
begin(document);
startLive(begin);
