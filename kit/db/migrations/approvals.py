"""The table of requests for a second person (kit.audit.approvals), alike in each service that has such calls.

The database itself refuses an approval by the requester, a change of what was requested, a second decision, and the
removal of a request.
"""

from alembic import op

from kit.db.migrations import guards

TERMS = (
    "id",
    "act",
    "object",
    "merchant_id",
    "summary",
    "request",
    "requested_by",
    "requested_person",
    "requested_as",
    "requested_at",
    "note",
)

_TABLE = """
CREATE TABLE approvals (
  id uuid NOT NULL,
  act text NOT NULL,
  object text NOT NULL,
  merchant_id uuid,
  summary text NOT NULL,
  request jsonb NOT NULL,
  requested_by text NOT NULL,
  requested_person uuid,
  requested_as text NOT NULL,
  requested_at timestamp with time zone NOT NULL,
  note text NOT NULL,
  state text NOT NULL DEFAULT 'pending',
  decided_by text,
  decided_person uuid,
  decided_as text,
  decided_at timestamp with time zone,
  decision_note text NOT NULL DEFAULT '',
  CONSTRAINT pk_approvals PRIMARY KEY (id),
  CONSTRAINT ck_approvals_request CHECK (
    jsonb_typeof(request) = 'object' AND octet_length(CAST(request AS text)) <= 16384
    AND octet_length(concat(act, object, summary, requested_by, requested_as, note, decision_note)) <= 32768
  ),
  CONSTRAINT ck_approvals_state CHECK (state IN ('pending', 'approved', 'rejected')),
  CONSTRAINT ck_approvals_decided CHECK (
    (state = 'pending') = (decided_by IS NULL)
    AND (state = 'pending') = (decided_as IS NULL)
    AND (state = 'pending') = (decided_at IS NULL)
  ),
  CONSTRAINT ck_approvals_other_person CHECK (
    state <> 'approved'
    OR (decided_by <> requested_by AND coalesce(decided_person <> requested_person, true))
  )
)
"""

# The query of one object's pending request, and the guard against a second one.
_ONE_PENDING = "CREATE UNIQUE INDEX uq_approvals_object ON approvals (object) WHERE state = 'pending'"
_BY_OBJECT = "CREATE INDEX ix_approvals_object ON approvals (object, id)"
_BEGIN_PENDING = """
CREATE TRIGGER approvals_begin_pending BEFORE INSERT ON approvals
FOR EACH ROW WHEN (NEW.state <> 'pending') EXECUTE FUNCTION refuse_rewriting('a request begins as a pending one')
"""


def make_approvals() -> None:
    """Makes the table `approvals` with its guards."""
    guards.make_refusal()
    for statement in (_TABLE, _ONE_PENDING, _BY_OBJECT, _BEGIN_PENDING):
        op.execute(statement)
    guards.keep("approvals", TERMS, ended="decided_at")
    guards.stay("approvals")
