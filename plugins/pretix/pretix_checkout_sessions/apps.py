"""The plugin as pretix lists it."""

from django.utils.translation import gettext_lazy as _
from pretix.base.plugins import PluginConfig

from pretix_checkout_sessions import __version__


class CheckoutSessionsApp(PluginConfig):
    """Register the plugin with pretix."""

    default = True
    name = "pretix_checkout_sessions"
    verbose_name = "Checkout Sessions"

    class PretixPluginMeta:
        """Describe the plugin in the organizer's list of plugins."""

        name = "Checkout Sessions"
        author = "The Checkout Sessions contributors"
        version = __version__
        category = "PAYMENT"
        description = _(
            "Take payments from Open Payments wallets, straight into your own wallet, through a "
            "checkout that you host."
        )
        compatibility = "pretix>=2026.8.0"
        settings_links = (
            (
                (_("Payment"), "Checkout Sessions"),
                "control:event.settings.payment.provider",
                {"provider": "checkoutsessions"},
            ),
        )

    def ready(self) -> None:
        """Connect the receivers of pretix's signals."""
        from pretix_checkout_sessions import signals  # noqa: F401
