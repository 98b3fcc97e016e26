/**
 * Members with which a body could become another call, or name the token or the fields of the response. No text of a tenant
 * goes to upstream with one of them.
 */
const CONTROL_MEMBERS = new Set(
  `access_token application_id appsecret_proof batch callback debug fields format id ids include_headers method metadata pretty
   relative_url return_ssl_resources suppress_http_code webhook_configuration override_callback_uri`.split(
    /\s+/,
  ),
);

export function isControlMember(name: string): boolean {
  return CONTROL_MEMBERS.has(name.toLowerCase());
}
