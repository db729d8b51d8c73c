// openapi-generator, typescript-fetch
import { Configuration, ErrorAnswerFromJSON, InvoicesApi, RefusalFromJSON, ResponseError } from "./client";

const { URL: basePath, KEY: apiKey, ORDER = "", CHOSEN = "" } = process.env;
const api = new InvoicesApi(new Configuration({ basePath, apiKey }));

async function create(currencyCode: string): Promise<string> {
  const order = { amount: "100.50", currencyCode, customerId: ORDER, externalId: ORDER };
  try {
    return (await api.createInvoice({ createInvoice: order })).status;
  } catch (refused) {
    if (!(refused instanceof ResponseError)) throw refused;
    const body = await refused.response.json();
    const error = refused.response.status === 422 ? RefusalFromJSON(body).error : ErrorAnswerFromJSON(body).error;
    return typeof error === "string" ? error : error.code;
  }
}

async function deal(invoiceRef: string): Promise<string> {
  return (await api.getInvoice({ invoiceRef })).data.deal?.status ?? "null";
}

async function main() {
  console.log(await create("EUR"), await deal(ORDER), await deal(CHOSEN), await create("EUR"), await create("XXX"));
}
main();
