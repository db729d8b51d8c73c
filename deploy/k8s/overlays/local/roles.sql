-- One role and database per service, as docs/operations.md has them.
CREATE ROLE merchants LOGIN PASSWORD 'local-only';
CREATE DATABASE merchants OWNER merchants;
REVOKE ALL ON DATABASE merchants FROM PUBLIC;
CREATE ROLE catalog LOGIN PASSWORD 'local-only';
CREATE DATABASE catalog OWNER catalog;
REVOKE ALL ON DATABASE catalog FROM PUBLIC;
CREATE ROLE invoices LOGIN PASSWORD 'local-only';
CREATE DATABASE invoices OWNER invoices;
REVOKE ALL ON DATABASE invoices FROM PUBLIC;
CREATE ROLE withdrawals LOGIN PASSWORD 'local-only';
CREATE DATABASE withdrawals OWNER withdrawals;
REVOKE ALL ON DATABASE withdrawals FROM PUBLIC;
CREATE ROLE webhooks LOGIN PASSWORD 'local-only';
CREATE DATABASE webhooks OWNER webhooks;
REVOKE ALL ON DATABASE webhooks FROM PUBLIC;
