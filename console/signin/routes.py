"""The addresses of sign-in and of the own account."""

from console.page import App
from console.signin.entry import InvitationPage, SignInPage, SignOutPage
from console.signin.factors import FactorsPage, PasskeysPage, PasswordPage, RecoveryCodesPage, TotpPage
from console.signin.sessions import SessionsPage
from console.signin.step_up import StepUpPage
from console.wiring import Deps


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    sign_in, step_up = SignInPage(deps), StepUpPage(deps)
    app.add_route("/sign-in", sign_in)
    app.add_route("/sign-in/challenge", sign_in, suffix="challenge")
    app.add_route("/sign-in/passkey", sign_in, suffix="passkey")
    app.add_route("/sign-out", SignOutPage(deps))
    app.add_route("/invitation", InvitationPage(deps))
    app.add_route("/step-up", step_up)
    app.add_route("/step-up/challenge", step_up, suffix="challenge")

    passkeys, totp, sessions = PasskeysPage(deps), TotpPage(deps), SessionsPage(deps)
    app.add_route("/account", FactorsPage(deps))
    app.add_route("/account/passkeys", passkeys)
    app.add_route("/account/passkeys/challenge", passkeys, suffix="challenge")
    app.add_route("/account/passkeys/{passkey_id}/remove", passkeys, suffix="remove")
    app.add_route("/account/password", PasswordPage(deps))
    app.add_route("/account/totp", totp)
    app.add_route("/account/totp/confirm", totp, suffix="confirm")
    app.add_route("/account/totp/remove", totp, suffix="remove")
    app.add_route("/account/recovery-codes", RecoveryCodesPage(deps))
    app.add_route("/account/sessions", sessions)
    app.add_route("/account/sessions/end-others", sessions, suffix="others")
    app.add_route("/account/sessions/{session_id}/end", sessions, suffix="end")
