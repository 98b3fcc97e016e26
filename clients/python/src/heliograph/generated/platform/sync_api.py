# Made by `npm run client` from the OpenAPI document. Do not edit it.

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal

from pydantic import TypeAdapter

from heliograph._sync_core import SyncCore
from heliograph._request import new_idempotency_key, parse_any, path_part, with_cursor
from . import models, requests

_PUT_TENANT_ENDPOINT: TypeAdapter[models.WebhookEndpoint | models.CreatedWebhookEndpoint] = TypeAdapter(models.WebhookEndpoint | models.CreatedWebhookEndpoint)


class SyncApi(SyncCore):
    """A method for each operation of the API."""

    def get_platform_document(self) -> dict[str, Any]:
        """This document.

        The OpenAPI 3.1 description of the API. It changes with releases only; `ETag` saves asking twice.
        """
        return self._call(parse_any, "GET", "/api/platform/openapi.json")

    def put_tenant(self, external_id: str, body: requests.TenantInput) -> models.Tenant:
        """Make or update a tenant.

        Makes a tenant under your own id (201), or brings it up to date (200); what is left out stays. `userId` gives your id to a tenant that was made elsewhere.

        Scope: `tenants`.
        """
        return self._call(models.Tenant.model_validate_json, "PUT", f"/api/platform/tenants/{path_part(external_id)}", body=body)

    def get_tenant(self, external_id: str) -> models.Tenant:
        """Get a tenant.

        With its WABAs and their numbers, its quotas, and what it stores.

        Scope: `read`.
        """
        return self._call(models.Tenant.model_validate_json, "GET", f"/api/platform/tenants/{path_part(external_id)}")

    def update_tenant(self, external_id: str, body: requests.TenantChange | None = None) -> models.Tenant:
        """Rename, suspend or resume a tenant.

        A suspended tenant sends nothing, gets no keys and changes nothing in the portal: those requests return 403 `tenant_suspended`. Its messages are received and delivered as before, so nothing is lost. `newExternalId` is your new id of the tenant.

        Scope: `tenants`.
        """
        return self._call(models.Tenant.model_validate_json, "PATCH", f"/api/platform/tenants/{path_part(external_id)}", body=body)

    def remove_tenant(self, external_id: str, body: requests.TenantRemoval) -> models.RemovedTenant:
        """Remove a tenant.

        Its keys are revoked, and its endpoints are deleted with their pending deliveries. The history of its WABAs is kept; no other tenant can have them. `confirm` is the externalId once more. A second time returns 404.

        Scope: `remove`.
        """
        return self._call(models.RemovedTenant.model_validate_json, "DELETE", f"/api/platform/tenants/{path_part(external_id)}", body=body)

    def list_tenants(self, *, limit: int | None = None, cursor: str | None = None, state: Literal["active", "suspended"] | None = None, updated_since: datetime | str | None = None) -> models.TenantList:
        """List tenants.

        The oldest first, with their WABAs, quotas and usage. An `externalId` of null: the tenant was made elsewhere.

        Scope: `read`.
        """
        return self._call(models.TenantList.model_validate_json, "GET", "/api/platform/tenants", query={"limit": limit, "cursor": cursor, "state": state, "updatedSince": updated_since})

    def iter_tenants(self, *, limit: int | None = None, cursor: str | None = None, state: Literal["active", "suspended"] | None = None, updated_since: datetime | str | None = None) -> Iterator[models.Tenant]:
        """The entries of all pages of `list_tenants`, which are asked for while you read."""
        return self._pages(lambda cursor: self.list_tenants(limit=limit, cursor=cursor, state=state, updated_since=updated_since), cursor)

    def put_tenant_policy(self, external_id: str, body: requests.TenantPolicyInput | None = None) -> models.TenantPolicy:
        """Set quotas and retention of a tenant.

        Null removes a value, so that the installation’s holds; what is left out stays. The answer has the tenant’s own values.

        Scope: `tenants`.
        """
        return self._call(models.TenantPolicy.model_validate_json, "PUT", f"/api/platform/tenants/{path_part(external_id)}/policy", body=body)

    def put_waba(self, external_id: str, waba_id: str, body: requests.WabaInput | None = None) -> models.PlatformWaba:
        """Add or update a WABA.

        Adds the WABA to the tenant (201), or brings it up to date (200); what is left out stays. With an access token, or with `lookUpNumbers`, the numbers are looked up at the upstream platform after the answer: GET the tenant to see them. The access token is never shown.

        Scope: `wabas`.
        """
        return self._call(models.PlatformWaba.model_validate_json, "PUT", f"/api/platform/tenants/{path_part(external_id)}/wabas/{path_part(waba_id)}", body=body)

    def remove_waba(self, external_id: str, waba_id: str) -> models.RemovedWaba:
        """Remove a WABA.

        Its keys are revoked, its token is deleted, and its endpoints with their pending deliveries. Its history is kept where there is one, and only this tenant can have it again. A second time returns 404.

        Scope: `remove`.
        """
        return self._call(models.RemovedWaba.model_validate_json, "DELETE", f"/api/platform/tenants/{path_part(external_id)}/wabas/{path_part(waba_id)}")

    def check_tenant_waba(self, external_id: str, waba_id: str) -> models.WabaCheck:
        """Check a WABA.

        Follows a webhook from the upstream platform to the endpoints, as `GET /api/external/waba-check` does. Asks upstream with each request.

        Scope: `read`.
        """
        return self._call(models.WabaCheck.model_validate_json, "GET", f"/api/platform/tenants/{path_part(external_id)}/wabas/{path_part(waba_id)}/check")

    def put_tenant_key(self, external_id: str, waba_id: str, key_ref: str, body: requests.TenantKeyInput) -> models.TenantKey:
        """Make an API key of a tenant.

        Makes the key (201) with `apiKey`, which is shown this once. Repeated: 200, and `apiKey` is null. A key keeps its scopes and networks; name and expiry are those of the request that made it. The scopes must be among the `grantableScopes` of the platform key.

        Scope: `keys`.
        """
        return self._call(models.TenantKey.model_validate_json, "PUT", f"/api/platform/tenants/{path_part(external_id)}/wabas/{path_part(waba_id)}/keys/{path_part(key_ref)}", body=body)

    def delete_tenant_key(self, external_id: str, waba_id: str, key_ref: str, *, cancel_scheduled: bool | None = None) -> models.RevokedTenantKey:
        """Revoke an API key of a tenant.

        From the next request on, the key returns 401. Its keyRef is free again. A second time returns 404. What the key has scheduled is still sent, unless you say `cancelScheduled=true`.

        Scope: `keys`.
        """
        return self._call(models.RevokedTenantKey.model_validate_json, "DELETE", f"/api/platform/tenants/{path_part(external_id)}/wabas/{path_part(waba_id)}/keys/{path_part(key_ref)}", query={"cancelScheduled": cancel_scheduled})

    def rotate_tenant_key(self, external_id: str, waba_id: str, key_ref: str, body: requests.TenantKeyRotation) -> models.RotatedTenantKey:
        """Replace an API key of a tenant.

        Makes a key with the same scopes, networks and lifetime. `apiKey` is shown this once; the earlier key ends after `overlapHours`. Repeated, it makes a further key.

        Scope: `keys`.
        """
        return self._call(models.RotatedTenantKey.model_validate_json, "POST", f"/api/platform/tenants/{path_part(external_id)}/wabas/{path_part(waba_id)}/keys/{path_part(key_ref)}/rotate", body=body)

    def get_own_platform_key(self) -> models.PlatformKey:
        """Get the platform key of this request.

        What the platform key may do; never the key itself.

        Scope: any.
        """
        return self._call(models.PlatformKey.model_validate_json, "GET", "/api/platform/keys/self")

    def put_tenant_endpoint(self, external_id: str, waba_id: str, endpoint_ref: str, body: requests.NewWebhookEndpoint) -> models.WebhookEndpoint | models.CreatedWebhookEndpoint:
        """Add or change a webhook endpoint.

        The body is that of `POST /api/external/webhook-endpoints`. 201 has the secret, which is shown this once. Repeated: 200, with the settings that are given; what is left out stays.

        Scope: `endpoints`.
        """
        return self._call(_PUT_TENANT_ENDPOINT.validate_json, "PUT", f"/api/platform/tenants/{path_part(external_id)}/wabas/{path_part(waba_id)}/endpoints/{path_part(endpoint_ref)}", body=body)

    def delete_tenant_endpoint(self, external_id: str, waba_id: str, endpoint_ref: str) -> models.DeletedTenantEndpoint:
        """Delete a webhook endpoint.

        Its pending deliveries are dropped; the log stays. A second time returns 404.

        Scope: `endpoints`.
        """
        return self._call(models.DeletedTenantEndpoint.model_validate_json, "DELETE", f"/api/platform/tenants/{path_part(external_id)}/wabas/{path_part(waba_id)}/endpoints/{path_part(endpoint_ref)}")

    def list_tenant_users(self, external_id: str) -> models.TenantUserList:
        """List the users of a tenant.

        All users of the portal who belong to the tenant, and open invitations; also those that you have not named.

        Scope: `users`.
        """
        return self._call(models.TenantUserList.model_validate_json, "GET", f"/api/platform/tenants/{path_part(external_id)}/users")

    def put_tenant_user(self, external_id: str, user_ref: str, body: requests.TenantUserInput) -> models.SavedTenantUser:
        """Invite a user of a tenant.

        Makes an invitation to the portal (201): it is sent by e-mail, or, where the installation sends none, `inviteUrl` has its link, which is shown this once. Repeated: 200, and `inviteUrl` is null; another `role` replaces the present one. A member with this address whom you have not named gets the `userRef`. An invitation that is not accepted within 7 days ends; the same request makes another one.

        Scope: `users`.
        """
        return self._call(models.SavedTenantUser.model_validate_json, "PUT", f"/api/platform/tenants/{path_part(external_id)}/users/{path_part(user_ref)}", body=body)

    def delete_tenant_user(self, external_id: str, user_ref: str) -> models.TenantUser:
        """Remove a user of a tenant.

        From the next request on, the sessions of the user in the tenant are over; an invitation that is open ends. A second time returns 404.

        Scope: `users`.
        """
        return self._call(models.TenantUser.model_validate_json, "DELETE", f"/api/platform/tenants/{path_part(external_id)}/users/{path_part(user_ref)}")

    def get_tenant_usage(self, *, from_: str | None = None, to: str | None = None, granularity: Literal["day", "month"] | None = None, group_by: str | None = None, tenant: str | None = None) -> models.TenantUsage:
        """Count messages of tenants by day.

        As `GET /api/external/usage/messages`, for all tenants or for one; with `groupBy=tenant` each tenant apart, by `userId` and `externalId`. Amounts of several currencies have no sum: `cost` is null then.

        Scope: `usage`.
        """
        return self._call(models.TenantUsage.model_validate_json, "GET", "/api/platform/usage/messages", query={"from": from_, "to": to, "granularity": granularity, "groupBy": group_by, "tenant": tenant})

    def get_tenant_usage_file(self, *, from_: str | None = None, to: str | None = None, granularity: Literal["day", "month"] | None = None, group_by: str | None = None, tenant: str | None = None) -> str:
        """Count messages of tenants by day, as a file.

        The rows of `GET /api/platform/usage/messages` as CSV, with a line of names first.

        Scope: `usage`.
        """
        return self._call(bytes.decode, "GET", "/api/platform/usage/messages.csv", query={"from": from_, "to": to, "granularity": granularity, "groupBy": group_by, "tenant": tenant})

    def put_usage_alert(self, external_id: str, body: requests.UsageAlertInput) -> models.TenantUsageAlerts:
        """Set an alert on a count of a tenant.

        When the count of a UTC day or month reaches the threshold, operators get the alert `quota_nearly_used`, and the feed of operation events has it. It ends with the day or month. A tenant has one for each metric and period; a `threshold` of null removes it. Nothing is refused because of it.

        Scope: `tenants`.
        """
        return self._call(models.TenantUsageAlerts.model_validate_json, "PUT", f"/api/platform/tenants/{path_part(external_id)}/usage-alerts", body=body)

    def create_portal_session(self, external_id: str, body: requests.PortalSessionInput) -> models.PortalSession:
        """Make a link that opens the portal of a tenant.

        The link works once, within five minutes; opening it shows a page with a button, and only the button uses it up. Make one for each visit. The session is in this tenant alone, or in those of its WABAs that `wabaIds` names: the others are then not to be seen. With several WABAs, the person chooses one, and comes to `page`. It ends after `sessionSeconds` (an hour unless given) or 30 minutes without use, and may do what `capabilities` names; left out: all that the role may do, without `view_conversations`. `view` is always included. `mfa` says that the person gave you a second factor. `returnUrl` and `refreshUrl` must be at an origin of `HELIOGRAPH_PORTAL_PRODUCT_ORIGINS`: a page whose link or session is over leads to `refreshUrl`. With `embed`, the link is for a frame on a page of that origin, and opens nowhere else.

        Scope: `portal_sessions`.
        """
        return self._call(models.PortalSession.model_validate_json, "POST", f"/api/platform/tenants/{path_part(external_id)}/portal-sessions", body=body)

    def end_portal_sessions(self, external_id: str, *, user: str | None = None, id: str | None = None) -> models.EndedPortalSessions:
        """End portal sessions of a tenant.

        Ends the links of the tenant and the sessions that they began, from the next request on: all of them, those of a `user`, or the one with this `id`. Suspending the tenant and revoking the platform key end them too.

        Scope: `portal_sessions`.
        """
        return self._call(models.EndedPortalSessions.model_validate_json, "DELETE", f"/api/platform/tenants/{path_part(external_id)}/portal-sessions", query={"user": user, "id": id})

    def create_setup_link(self, external_id: str, body: requests.SetupLinkInput, *, idempotency_key: str | None = None) -> models.NewSetupLink:
        """Make a link by which a customer connects a number.

        On its page the customer consents in the dialog of upstream and picks a number; the rest, from subscribing the app to registering the number, is done and repeated by the service. The link works in one browser from then on. `successUrl` and `failureUrl` must be at an origin of `HELIOGRAPH_PORTAL_PRODUCT_ORIGINS`; the customer is led there with `setupLink`, `status`, `wabaId`, `phoneNumberId`, `code` and `state`. That is a convenience: what happened, `setup_link.done` of the operation events and GET of the link tell. A link expires after `expiresInHours` (168 unless given). A tenant has five open links at most. Without an app in the settings, `signup` returns 409 `signup_not_configured`, and `steps` makes a link all the same.

        Scope: `setup_links`.
        """
        return self._call(models.NewSetupLink.model_validate_json, "POST", f"/api/platform/tenants/{path_part(external_id)}/setup-links", body=body, idempotency_key=idempotency_key or new_idempotency_key())

    def list_setup_links(self, external_id: str, *, limit: int | None = None, cursor: str | None = None, state: Literal["open", "started", "authorized", "subscribed", "registered", "done", "failed", "cancelled", "expired", "revoked"] | None = None) -> models.SetupLinkList:
        """List the set-up links of a tenant.

        The newest first. Links that have ended are kept for 30 days after their time.

        Scope: `read`.
        """
        return self._call(models.SetupLinkList.model_validate_json, "GET", f"/api/platform/tenants/{path_part(external_id)}/setup-links", query={"limit": limit, "cursor": cursor, "state": state})

    def iter_setup_links(self, external_id: str, *, limit: int | None = None, cursor: str | None = None, state: Literal["open", "started", "authorized", "subscribed", "registered", "done", "failed", "cancelled", "expired", "revoked"] | None = None) -> Iterator[models.SetupLink]:
        """The entries of all pages of `list_setup_links`, which are asked for while you read."""
        return self._pages(lambda cursor: self.list_setup_links(external_id, limit=limit, cursor=cursor, state=state), cursor)

    def get_setup_link(self, external_id: str, setup_link_id: str) -> models.SetupLink:
        """Get a set-up link.

        How far the customer is, or why it failed. The link itself is not shown again.

        Scope: `read`.
        """
        return self._call(models.SetupLink.model_validate_json, "GET", f"/api/platform/tenants/{path_part(external_id)}/setup-links/{path_part(setup_link_id)}")

    def revoke_setup_link(self, external_id: str, setup_link_id: str) -> models.SetupLink:
        """Revoke a set-up link.

        Its page does nothing any more, and its workflow is cancelled. What it has done stays: a WABA that was added is the tenant’s. A link that has ended stays as it is.

        Scope: `setup_links`.
        """
        return self._call(models.SetupLink.model_validate_json, "DELETE", f"/api/platform/tenants/{path_part(external_id)}/setup-links/{path_part(setup_link_id)}")

    def put_brand(self, body: requests.BrandInput | None = None) -> models.Brand:
        """Set name, logo and colour of the portal.

        For all tenants that have no values of their own, and for the sign-in. Null removes a value; what is left out stays. The accent colour is that of buttons: white text on it needs a contrast of 4.5:1, or it is refused with the contrast that it has. The kind of the logo is found by its bytes; SVG is none of them.

        Scope: `tenants`.
        """
        return self._call(models.Brand.model_validate_json, "PUT", "/api/platform/brand", body=body)

    def put_tenant_brand(self, external_id: str, body: requests.BrandInput | None = None) -> models.Brand:
        """Set name, logo and colour of the portal for a tenant.

        Null removes a value; what is left out stays. The accent colour is that of buttons: white text on it needs a contrast of 4.5:1, or it is refused with the contrast that it has. The kind of the logo is found by its bytes; SVG is none of them.

        Scope: `tenants`.
        """
        return self._call(models.Brand.model_validate_json, "PUT", f"/api/platform/tenants/{path_part(external_id)}/brand", body=body)

    def list_platform_audit(self, *, limit: int | None = None, cursor: str | None = None, tenant: str | None = None) -> models.PlatformAuditEntryList:
        """List the changes of platform keys.

        The newest entries of the audit log that platform keys caused, of all tenants or of one.

        Scope: `read`.
        """
        return self._call(models.PlatformAuditEntryList.model_validate_json, "GET", "/api/platform/audit", query={"limit": limit, "cursor": cursor, "tenant": tenant})

    def iter_platform_audit(self, *, limit: int | None = None, cursor: str | None = None, tenant: str | None = None) -> Iterator[models.PlatformAuditEntry]:
        """The entries of all pages of `list_platform_audit`, which are asked for while you read."""
        return self._pages(lambda cursor: self.list_platform_audit(limit=limit, cursor=cursor, tenant=tenant), cursor)

    def list_operation_events(self, *, limit: int | None = None, cursor: str | None = None, types: str | None = None, tenant: str | None = None) -> models.OperationEventList:
        """List operation events.

        What changed in the installation, in the order of the commits; an event is written with its change, so none is lost or invented. There is always a `nextCursor`: keep it, and ask again. A page may be empty while `hasMore` is true. Events are kept as long as the audit log, 30 days at least. They hold no data of customers.

        Scope: `read`.
        """
        return self._call(models.OperationEventList.model_validate_json, "GET", "/api/platform/operation-events", query={"limit": limit, "cursor": cursor, "types": types, "tenant": tenant})

    def iter_operation_events(self, *, limit: int | None = None, cursor: str | None = None, types: str | None = None, tenant: str | None = None) -> Iterator[models.OperationEvent]:
        """The entries of all pages of `list_operation_events`, which are asked for while you read."""
        return self._pages(lambda cursor: self.list_operation_events(limit=limit, cursor=cursor, types=types, tenant=tenant), cursor)

    def list_operations_hooks(self) -> models.OperationsHookList:
        """List the hooks of operation events.

        All of them, with how far each has received the events, and the last error.

        Scope: `read`.
        """
        return self._call(models.OperationsHookList.model_validate_json, "GET", "/api/platform/operations-hooks")

    def get_operations_hook(self, hook_ref: str) -> models.OperationsHook:
        """Get a hook of operation events.

        How far it has received the events, and the last error.

        Scope: `read`.
        """
        return self._call(models.OperationsHook.model_validate_json, "GET", f"/api/platform/operations-hooks/{path_part(hook_ref)}")

    def put_operations_hook(self, hook_ref: str, body: requests.OperationsHookInput) -> models.SavedOperationsHook:
        """Have operation events sent to a URL.

        Adds a hook (201) with `secret`, which is shown this once; it gets the events from now on. Repeated: 200, `secret` is null, and what is left out stays. Each event is a POST, signed by Standard Webhooks, with the event as `GET /api/platform/operation-events` has it; its `webhook-id` is the id of the event, the same at every attempt. The events of each tenant come in the order of the feed: one that is not accepted with a 2xx is sent again after 5 seconds, later after up to 30 minutes, and those of its tenant behind it wait. A hook that accepts nothing for 3 days, or returns 410, is disabled; with `state` `enabled` it continues where it stopped.

        Scope: `endpoints`.
        """
        return self._call(models.SavedOperationsHook.model_validate_json, "PUT", f"/api/platform/operations-hooks/{path_part(hook_ref)}", body=body)

    def delete_operations_hook(self, hook_ref: str) -> models.DeletedOperationsHook:
        """Delete a hook of operation events.

        Nothing more is sent to it. The feed keeps the events. A second time returns 404.

        Scope: `endpoints`.
        """
        return self._call(models.DeletedOperationsHook.model_validate_json, "DELETE", f"/api/platform/operations-hooks/{path_part(hook_ref)}")

    def rotate_operations_hook_secret(self, hook_ref: str, body: requests.OperationsHookRotation) -> models.RotatedOperationsHookSecret:
        """Replace the secret of a hook of operation events.

        `secret` is shown this once. For `overlapHours`, requests carry the signatures of both secrets. Repeated, it makes a further secret.

        Scope: `endpoints`.
        """
        return self._call(models.RotatedOperationsHookSecret.model_validate_json, "POST", f"/api/platform/operations-hooks/{path_part(hook_ref)}/rotate-secret", body=body)

    def test_operations_hook(self, hook_ref: str) -> models.OperationsHook:
        """Send a test event to a hook of operation events.

        Has one event of the type `hook.test` sent within seconds, also to a hook that is disabled. It is attempted once; `lastSuccessAt` or `lastError` of the hook tells how it went.

        Scope: `endpoints`.
        """
        return self._call(models.OperationsHook.model_validate_json, "POST", f"/api/platform/operations-hooks/{path_part(hook_ref)}/test")
