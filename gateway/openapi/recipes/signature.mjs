// Fiatgate webhooks: is this request genuine? Needs nothing but Node.
import { createHmac, timingSafeEqual } from "node:crypto";

// timestamp, signature: the headers X-Signature-Timestamp and X-Signature, "" when missing.
// body: a Buffer with the raw body. In Express: express.raw({ type: "application/json" }), and request.body.
export function isGenuine(secret, timestamp, signature, body) {
  const expected = createHmac("sha256", secret).update(timestamp + ".").update(body).digest("hex");
  const given = Buffer.from(signature);
  return given.length === expected.length && timingSafeEqual(Buffer.from(expected), given);
}
