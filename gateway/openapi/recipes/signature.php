<?php
// Fiatgate webhooks: is this request genuine? Needs nothing but PHP.

/**
 * $timestamp, $signature: $_SERVER['HTTP_X_SIGNATURE_TIMESTAMP'] ?? '' and $_SERVER['HTTP_X_SIGNATURE'] ?? ''.
 * $body: file_get_contents('php://input'), unparsed.
 */
function is_genuine(string $secret, string $timestamp, string $signature, string $body): bool
{
    $expected = hash_hmac('sha256', $timestamp . '.' . $body, $secret);
    return hash_equals($expected, $signature);
}
