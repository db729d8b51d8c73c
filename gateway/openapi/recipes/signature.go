// Package fiatgate checks Fiatgate webhooks. Needs nothing but the standard library.
package fiatgate

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// IsGenuine says whether a webhook is from Fiatgate. timestamp and signature are the headers
// X-Signature-Timestamp and X-Signature (r.Header.Get), body is io.ReadAll(r.Body), unparsed.
func IsGenuine(secret, timestamp, signature string, body []byte) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	expected := hex.EncodeToString(mac.Sum(nil))
	return hmac.Equal([]byte(expected), []byte(signature))
}
