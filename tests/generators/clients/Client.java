// openapi-generator, java
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.JSON;
import org.openapitools.client.api.InvoicesApi;
import org.openapitools.client.model.CreateInvoice;
import org.openapitools.client.model.ErrorAnswer;
import org.openapitools.client.model.Refusal;

public class Client {
    static final String ORDER = System.getenv("ORDER");

    static CreateInvoice order(String currency) {
        return new CreateInvoice().amount("100.50").currencyCode(currency).customerId(ORDER).externalId(ORDER);
    }

    static String refused(InvoicesApi api, String currency) {
        try {
            return api.createInvoice(order(currency)).getStatus();
        } catch (ApiException refused) {
            String body = refused.getResponseBody();
            return refused.getCode() == 422
                ? JSON.getGson().fromJson(body, Refusal.class).getError().getErrorBody().getCode()
                : JSON.getGson().fromJson(body, ErrorAnswer.class).getError().getCode();
        }
    }

    public static void main(String[] arguments) throws ApiException {
        ApiClient client = new ApiClient().setBasePath(System.getenv("URL"));
        client.setApiKey(System.getenv("KEY"));
        InvoicesApi api = new InvoicesApi(client);
        String status = api.createInvoice(order("EUR")).getStatus();
        String first = api.getInvoice(ORDER).getData().getDeal() == null ? "null" : "deal";
        String chosen = api.getInvoice(System.getenv("CHOSEN")).getData().getDeal().getStatus();
        System.out.println(String.join(" ", status, first, chosen, refused(api, "EUR"), refused(api, "XXX")));
        System.exit(0); // its HTTP client keeps threads
    }
}
