import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.HexFormat;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** Fiatgate webhooks: is this request genuine? Needs nothing but Java 17. */
public final class Signature {
    /**
     * timestamp, signature: the headers X-Signature-Timestamp and X-Signature, "" when missing; body: raw, unparsed.
     * In Spring: @RequestBody byte[] body.
     */
    public static boolean isGenuine(String secret, String timestamp, String signature, byte[] body)
            throws GeneralSecurityException {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(secret.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
        mac.update((timestamp + ".").getBytes(StandardCharsets.UTF_8));
        String expected = HexFormat.of().formatHex(mac.doFinal(body));
        return MessageDigest.isEqual(
                expected.getBytes(StandardCharsets.UTF_8), signature.getBytes(StandardCharsets.UTF_8));
    }

    private Signature() {}
}
