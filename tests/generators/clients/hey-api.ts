// @hey-api/openapi-ts
import { createInvoice, getInvoice } from "./client";
import { client } from "./client/client.gen";

const { URL: baseUrl, KEY = "", ORDER = "", CHOSEN = "" } = process.env;
client.setConfig({ baseUrl, auth: KEY });

async function create(currency_code: string): Promise<string> {
  const body = { amount: "100.50", currency_code, customer_id: ORDER, external_id: ORDER };
  const { data, error } = await createInvoice({ body });
  if (data) return data.status;
  return typeof error.error === "string" ? error.error : error.error.code;
}

async function deal(invoice_ref: string): Promise<string> {
  const { data } = await getInvoice({ path: { invoice_ref } });
  return data?.data.deal?.status ?? "null";
}

async function main() {
  console.log(await create("EUR"), await deal(ORDER), await deal(CHOSEN), await create("EUR"), await create("XXX"));
}
main();
