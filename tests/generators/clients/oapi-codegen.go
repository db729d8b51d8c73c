// oapi-codegen
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"example.org/shop/client"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

var order, ctx = os.Getenv("ORDER"), context.Background()
var api = must(client.NewClientWithResponses(os.Getenv("URL"), client.WithRequestEditorFn(
	func(_ context.Context, request *http.Request) error {
		request.Header.Set("X-Api-Key", os.Getenv("KEY"))
		return nil
	})))

func create(currency string) string {
	body := client.CreateInvoice{Amount: "100.50", CurrencyCode: currency, CustomerId: order, ExternalId: order}
	answer := must(api.CreateInvoiceWithResponse(ctx, body))
	switch {
	case answer.JSON201 != nil:
		return answer.JSON201.Status
	case answer.JSON409 != nil:
		return answer.JSON409.Error.Code
	default:
		return must(answer.JSON422.Error.AsErrorBody()).Code
	}
}

func deal(ref string) string {
	deal := must(api.GetInvoiceWithResponse(ctx, ref)).JSON200.Data.Deal
	if deal == nil {
		return "null"
	}
	return deal.Status
}

func main() {
	fmt.Println(create("EUR"), deal(order), deal(os.Getenv("CHOSEN")), create("EUR"), create("XXX"))
}
