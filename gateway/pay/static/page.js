// Makes the page smoother where scripts run. Nothing here is required: every step is a plain link or form.
import { startCopying } from "./copy.js";
import { startCountdowns } from "./countdown.js";
import { startForms } from "./forms.js";
import { startFrame } from "./frame.js";
import { startLive } from "./live.js";
import { startReturn } from "./return.js";
import { localTimes } from "./times.js";

const DESKTOP = "(min-width: 60rem)"; // as in pay.css

// A customer at a desktop scans the code with a phone: it is open there.
function openCodes(root) {
  if (!matchMedia(DESKTOP).matches) return;
  for (const details of root.querySelectorAll("details.qr")) details.open = true;
}

function begin(root) {
  openCodes(root);
  localTimes(root);
  startCopying(root);
  startCountdowns(root);
  startForms(root);
  startReturn(root);
}

document.documentElement.classList.add("scripted");
startFrame();
begin(document);
startLive(begin);
