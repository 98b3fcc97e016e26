import { SUSPENDED } from '../../features/accounts/suspension.ts';

/** Error codes of the platform API, and of tenants whom it has suspended. */
export const PLATFORM_ERROR_CODES = {
  tenant_suspended: {
    status: 403,
    message: SUSPENDED,
    advice:
      'Messages are received and delivered as before. Ask the operator of the service why it is suspended.',
  },
  scope_not_grantable: {
    status: 403,
    message: 'The platform key may not give this scope.',
    advice:
      'Concerns /api/platform only. GET /api/platform/keys/self shows "grantableScopes", which the operator sets with the key.',
  },
  unknown_tenant: {
    status: 404,
    message: 'There is no such tenant.',
    advice:
      'Concerns /api/platform only. No tenant has this externalId. GET /api/platform/tenants lists those there are.',
  },
  unknown_waba: {
    status: 404,
    message: 'The tenant has no such WABA.',
    advice:
      'Concerns /api/platform only. GET /api/platform/tenants/{externalId} lists the WABAs of the tenant.',
  },
  unknown_key: {
    status: 404,
    message: 'There is no such API key.',
    advice: 'Concerns /api/platform only. The WABA has no key with this keyRef, or it was deleted.',
  },
  unknown_user: {
    status: 404,
    message: 'The tenant has no such user.',
    advice: 'Concerns /api/platform only. GET /api/platform/tenants/{externalId}/users lists its users.',
  },
  user_exists: {
    status: 409,
    message: 'The tenant has this user under another name.',
    advice: 'Concerns /api/platform only. GET /api/platform/tenants/{externalId}/users shows the userRef.',
  },
  user_differs: {
    status: 409,
    message: 'The user with this userRef has another e-mail address.',
    advice:
      'Concerns /api/platform only. Users keep their address: delete the user and add it again, or use another userRef.',
  },
  too_many_links: {
    status: 429,
    message: 'The tenant has had too many links for users.',
    advice: 'Concerns /api/platform only. Wait for the time that the message names.',
  },
  unknown_operations_hook: {
    status: 404,
    message: 'There is no such hook.',
    advice: 'Concerns /api/platform only. GET /api/platform/operations-hooks lists the hooks.',
  },
  too_many_operations_hooks: {
    status: 409,
    message: 'The installation has reached its limit of hooks.',
    advice: 'Concerns /api/platform only. Delete a hook that you do not need.',
  },
  key_differs: {
    status: 409,
    message: 'The key with this keyRef has other values.',
    advice:
      'Concerns /api/platform only. A key keeps its scopes and networks: delete it and make it again, or use another keyRef.',
  },
  external_id_taken: {
    status: 409,
    message: 'Another tenant has this external id.',
    advice: 'Concerns /api/platform only. Each external id names one tenant of the installation.',
  },
  tenant_has_external_id: {
    status: 409,
    message: 'The tenant has another external id.',
    advice: 'Concerns /api/platform only. Use that one, or give the tenant a new one with "newExternalId".',
  },
  tenant_in_use: {
    status: 409,
    message: 'The tenant was changed meanwhile.',
    advice: 'Concerns /api/platform only. Repeat the request.',
  },
  waba_taken: {
    status: 409,
    message: 'The WABA belongs to another tenant.',
    advice:
      'Concerns /api/platform only. A WABA stays with its tenant, also after it was removed, because its history does.',
  },
  url_not_allowed: {
    status: 422,
    message: 'The address is not at an origin of the product.',
    advice:
      'Concerns /api/platform only. The operator lists the origins in HELIOGRAPH_PORTAL_PRODUCT_ORIGINS; nothing else is led back to.',
  },
  unknown_setup_link: {
    status: 404,
    message: 'The tenant has no such set-up link.',
    advice:
      'Concerns /api/platform only. GET /api/platform/tenants/{externalId}/setup-links lists the links of the tenant.',
  },
  too_many_setup_links: {
    status: 409,
    message: 'The tenant has five open set-up links.',
    advice: 'Concerns /api/platform only. Revoke one with DELETE, or wait until one has ended.',
  },
  signup_not_configured: {
    status: 409,
    message: 'No app is configured in whose dialog customers could connect numbers.',
    advice:
      'Concerns /api/platform only. The operator sets HELIOGRAPH_UPSTREAM_APP_ID and HELIOGRAPH_UPSTREAM_SIGNUP_CONFIG_ID. Without them, "mode": "steps" makes a link on which the customer enters an access token.',
  },
  phone_number_taken: {
    status: 409,
    message: 'The phone number belongs to another WABA.',
    advice: 'Concerns /api/platform only. Leave the number out, or remove it from the other WABA first.',
  },
} as const;
