// ogen
package main

import (
	"context"
	"fmt"
	"os"

	"example.org/shop/client"
)

type key struct{}

func (key) ApiKey(context.Context, client.OperationName) (client.ApiKey, error) {
	return client.ApiKey{APIKey: os.Getenv("KEY")}, nil
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

var order, ctx = os.Getenv("ORDER"), context.Background()
var api = must(client.NewClient(os.Getenv("URL"), key{}))

func create(currency string) string {
	body := &client.CreateInvoice{Amount: "100.50", CurrencyCode: currency, CustomerID: order, ExternalID: order}
	switch answer := must(api.CreateInvoice(ctx, body)).(type) {
	case *client.CreatedInvoiceHeaders:
		return answer.Response.Status
	case *client.CreateInvoiceConflict:
		return answer.Response.Error.Code
	case *client.RefusalHeaders:
		return answer.Response.Error.ErrorBody.Code
	default:
		panic(answer)
	}
}

func deal(ref string) string {
	invoice := must(api.GetInvoice(ctx, client.GetInvoiceParams{InvoiceRef: ref})).(*client.GetInvoiceOKHeaders)
	if deal, set := invoice.Response.Data.Deal.Get(); set {
		return deal.Status
	}
	return "null"
}

func main() {
	fmt.Println(create("EUR"), deal(order), deal(os.Getenv("CHOSEN")), create("EUR"), create("XXX"))
}
