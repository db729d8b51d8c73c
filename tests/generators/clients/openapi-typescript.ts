// openapi-typescript, with openapi-fetch
import createClient from "openapi-fetch";
import type { paths } from "./client";

const { URL: baseUrl, KEY = "", ORDER = "", CHOSEN = "" } = process.env;
const api = createClient<paths>({ baseUrl, headers: { "X-Api-Key": KEY } });

async function create(currency_code: string): Promise<string> {
  const body = { amount: "100.50", currency_code, customer_id: ORDER, external_id: ORDER };
  const { data, error } = await api.POST("/api/v1/create-invoice", { body });
  if (data) return data.status;
  return typeof error.error === "string" ? error.error : error.error.code;
}

async function deal(invoice_ref: string): Promise<string> {
  const { data } = await api.GET("/api/v1/invoices/{invoice_ref}", { params: { path: { invoice_ref } } });
  return data?.data.deal?.status ?? "null";
}

async function main() {
  console.log(await create("EUR"), await deal(ORDER), await deal(CHOSEN), await create("EUR"), await create("XXX"));
}
main();
