<?php // openapi-generator, php
require "GuzzleHttp/autoload.php";
spl_autoload_register(fn ($name) => require "client/lib/" . strtr(substr($name, strlen("OpenAPI\\Client\\")), "\\", "/") . ".php");

$order = getenv("ORDER");
$config = (new OpenAPI\Client\Configuration())->setHost(getenv("URL"))->setApiKey("X-Api-Key", getenv("KEY"));
$api = new OpenAPI\Client\Api\InvoicesApi(new GuzzleHttp\Client(), $config);

function create(string $currency): string {
    global $api, $order;
    try {
        return $api->createInvoice(new OpenAPI\Client\Model\CreateInvoice([
            "amount" => "100.50", "currency_code" => $currency, "customer_id" => $order, "external_id" => $order,
        ]))->getStatus();
    } catch (OpenAPI\Client\ApiException $refused) {
        return $refused->getResponseObject()->getError()->getCode();
    }
}

function deal(string $ref): string {
    global $api;
    return $api->getInvoice($ref)->getData()->getDeal()?->getStatus() ?? "null";
}

echo implode(" ", [create("EUR"), deal($order), deal(getenv("CHOSEN")), create("EUR"), create("XXX")]), "\n";
