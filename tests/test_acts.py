"""The act of each call that changes something: total for all services, against what the protos say.

That a call leaves exactly its act is in tests/cli/test_audit.py, and for people in tests/identity/people/test_acts.py.
"""

import ast
from typing import Final

from console.words import acts
from kit.base.services import SERVICES
from tests.support.contracts import permissions_of
from tests.test_architecture import sources

ACT_OF: Final = {
    "ActorKeysService/RotateActorKey": "actor_key.rotate",
    "AuditService/RestartHead": "heads.restart",
    "BankService/IgnoreLine": "bank-line.ignore",
    "BankService/ImportFile": "bank-file.import",
    "BankService/LinkRefund": "bank-line.link",
    "BankService/ReleaseLine": "bank-line.restore",
    "BankService/RestoreLine": "bank-line.restore",
    "BankService/UseLine": "bank-line.use",
    "BankService/DeleteCsvProfile": "csv-profile.delete",
    "BankService/SaveCsvProfile": "csv-profile.save",
    "FeedService/CreateConnector": "bank-connector.create",
    "FeedService/RevokeConnector": "bank-connector.revoke",
    "CatalogService/AcceptRate": "rate.accept",
    "CatalogService/PullRates": "rate.pull",
    "CatalogService/SetCurrency": "currency.set",
    "CatalogService/SetPaymentMethod": "method.set",
    "CatalogService/SetRate": "rate.set",
    "CorrectionsService/MakeCorrection": "correction.make",
    "DealDeskService/AddRequisite": "requisite.add",
    "DealDeskService/AddRequisites": "requisite.add",
    "DealDeskService/ConfirmDeal": "deal.confirm",
    "DealDeskService/DisableRequisite": "requisite.disable",
    "DealDeskService/EnableRequisite": "requisite.enable",
    "DealDeskService/OpenAppeal": "deal.appeal",
    "DealDeskService/OpenLateCase": "case.open",
    "DealDeskService/RejectDeal": "deal.reject",
    "DealDeskService/ResolveAppeal": "deal.resolve",
    "DealDeskService/AnswerCase": "case.answer",
    "DealDeskService/ResolveCase": "case.resolve",
    "DealDeskService/SetDealsSystem": "deals-system.set",
    "LinePaymentsService/ConfirmByLine": "deal.confirm",
    "LinePaymentsService/LinkDeal": "line-payment.record",
    "LinePaymentsService/SetLineRule": "line-rule.set",
    "InvoicesService/CancelInvoice": "invoice.cancel",
    "InvoicesService/CancelLink": "link.cancel",
    "InvoicesService/CreateInvoiceByHand": "invoice.create",
    "InvoicesService/CreateLink": "link.create",
    "InvoicesService/ReannounceInvoices": "invoice.reannounce",
    "InvoicesService/RestoreForgotten": "invoice.restore",
    "MerchantsService/ActivateMerchant": "merchant.activate",
    "MerchantsService/BanMerchant": "merchant.ban",
    "MerchantsService/BlockOwner": "owner.block",
    "MerchantsService/ConfigureMerchant": "merchant.configure",
    "MerchantsService/ConfigureOwnMerchant": "merchant.configure",
    "MerchantsService/CreateApiKey": "key.create",
    "MerchantsService/CreateMerchant": "merchant.create",
    "MerchantsService/DeactivateApiKey": "key.deactivate",
    "MerchantsService/SetCategory": "category.set",
    "MerchantsService/SetLateMoney": "merchant.configure",
    "MerchantsService/UnbanMerchant": "merchant.unban",
    "MerchantsService/UnblockOwner": "owner.unblock",
    "OwnAccountService/ConfirmTotp": "factor.add",
    "OwnAccountService/EndOtherSessions": "session.end",
    "OwnAccountService/EndOwnSession": "session.end",
    "OwnAccountService/MakeRecoveryCodes": "factor.add",
    "OwnAccountService/RegisterPasskey": "factor.add",
    "OwnAccountService/RemovePasskey": "factor.remove",
    "OwnAccountService/RemoveTotp": "factor.remove",
    "OwnAccountService/SetPassword": "factor.add",
    "ParkedService/DiscardParked": "parked.discard",
    "ParkedService/RetryParked": "parked.retry",
    "PeopleService/DisablePerson": "person.disable",
    "PeopleService/EnablePerson": "person.enable",
    "PeopleService/EndSession": "session.end",
    "PeopleService/InvitePerson": "person.invite",
    "PeopleService/RecoverPerson": "person.recover",
    "PeopleService/SetRoles": "person.roles",
    "PeopleService/WithdrawInvitation": "invitation.withdraw",
    "SignInService/AcceptInvitation": "invitation.accept",
    "SignInService/SignInByPasskey": "session.start",
    "SignInService/SignInByPassword": "session.start",
    "SignInService/SignOut": "session.end",
    "SignInService/StepUp": "session.step_up",
    "RefundsService/CancelRefund": "refund.cancel",
    "RefundsService/CompleteRefund": "refund.complete",
    "RefundsService/FailRefund": "refund.fail",
    "RefundsService/GiveRefundAccount": "refund.account",
    "RefundsService/RequestRefund": "refund.request",
    "RefundsService/SendRefund": "refund.send",
    "RefundsService/SetRefundAccount": "refund.account",
    "WebhooksService/PruneAttempts": "attempts.prune",
    "WebhooksService/RescheduleStuckEvents": "event.reschedule",
    "WebhooksService/ResendLatest": "event.resend",
    "WebhooksService/SendTest": "webhooks.test",
    "WithdrawalsService/AddAddress": "withdrawal-address.add",
    "WithdrawalsService/CancelWithdrawal": "withdrawal.cancel",
    "WithdrawalsService/CompleteWithdrawal": "withdrawal.complete",
    "WithdrawalsService/CreateWithdrawal": "withdrawal.create",
    "WithdrawalsService/FailWithdrawal": "withdrawal.fail",
    "WithdrawalsService/ProcessWithdrawal": "withdrawal.process",
    "WithdrawalsService/RemoveAddress": "withdrawal-address.remove",
    "WithdrawalsService/RequestWithdrawal": "withdrawal.create",
    "WithdrawalsService/SetWithdrawalMethod": "withdrawal-method.set",
}
"""A call may leave acts that follow from its own: a person who is disabled has no session any more."""

NO_ACT: Final = {
    "ApprovalsService/Approve": "the act of the change, and approval.approve (tests/kit/test_approvals.py)",
    "ApprovalsService/Reject": "approval.reject (tests/kit/test_approvals.py)",
    "BankService/ClaimLine": "keeps the line for half a minute; the payment that follows has its act",
    "BankService/FollowPayments": "copies what invoices has recorded with its acts",
    "CatalogService/KeepLogo": "a picture that no method has; the act of the change that takes it names it",
    "CheckoutService/*": "steps of a customer: their history is in the invoice",
    "FeedService/PostLines": "what a bank says, sealed, with its connector; bank-line.reverse of what is taken back",
    "HeadsService/KeepHead": "a process keeps the head of another's chain; its table is append-only itself",
    "InvoicesService/CreateInvoice": "a merchant's program: its history is in the invoice",
    "MerchantsService/KeepLogo": "a picture that no merchant has; the act of the change that takes it names it",
    "SimulationService/Simulate": "test mode: the operation of each step records its own",
    "NoticesService/TellOwners": "an e-mail about an act of withdrawals",
    "OwnAccountService/StartPasskeyRegistration": "a challenge, which changes nothing until it is answered",
    "OwnAccountService/StartTotp": "a secret that counts once it is confirmed",
    "SignInService/Authorize": "a request of a session; only the time of its last one changes",
    "SignInService/ChooseMerchant": "a member looks at another of its own merchants",
    "SignInService/GetInvitation": "a read",
    "SignInService/KnowsNetwork": "a read",
    "SignInService/StartPasskey": "a challenge, which changes nothing until it is answered",
}
"""Calls that are declared as changes and leave no act of their own, with the reason."""


def test_each_call_that_changes_something_has_an_act_or_a_reason_for_none() -> None:
    changing = {
        method for service in SERVICES for method, row in permissions_of(service).items() if row.changes
    }
    of_customers = {method for method in changing if method.startswith("CheckoutService/")}
    assert of_customers
    named = ACT_OF.keys() | NO_ACT.keys() - {"CheckoutService/*"}
    assert changing - of_customers == named, "record an act in the operation, and name it here"


def literals() -> set[str]:
    return {
        node.value
        for room in ("services", "kit/audit", "kit/events")
        for path in sources(room)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_each_act_is_recorded_somewhere_and_is_a_sentence() -> None:
    made = literals() | {"currency.set", "method.set"}  # made of the kind of entry
    assert set(ACT_OF.values()) <= made
    for act in ACT_OF.values():
        assert act in acts.SENTENCES or act.partition(".")[2] in acts.PAST
