# Made by `npm run client` from the OpenAPI document. Do not edit it.
"""Bodies of requests."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypeAlias

from typing_extensions import NotRequired, TypedDict


class ControlThreadRequest(TypedDict):
    action: Literal["take", "pass", "release"]
    metadata: NotRequired[str]


class ConversationSearch(TypedDict):
    limit: NotRequired[int]
    """How many entries a page has at most."""
    cursor: NotRequired[str]
    """`nextCursor` of the previous page, with the same filters. Left out: the first page."""
    order: NotRequired[Literal["asc", "desc"]]
    """`asc` lists without gaps, and always gives a cursor to continue from later."""
    phoneNumberId: NotRequired[str]
    """Conversations of this number only."""
    customer: NotRequired[str]
    """The conversation with this customer only: a phone number or a user id."""
    optedOut: NotRequired[bool]
    """Only those with customers who want no messages of some kind, or only the others."""
    since: NotRequired[datetime | str]
    """Conversations active at this time or later."""


class EnableWebhookEndpointRequest(TypedDict):
    waiting: NotRequired[Literal["send", "drop"]]


class ErasureRequest(TypedDict):
    customer: NotRequired[str]
    """A phone number in any usual form, or a business-scoped user id."""
    conversationId: NotRequired[str]
    """One conversation only."""


class ExportRequest(TypedDict):
    customer: str
    """A phone number in any usual form, or a business-scoped user id."""


class MarkMessageReadRequest(TypedDict):
    typingIndicator: NotRequired[bool]


class MessageMove(TypedDict):
    sendAt: datetime | str
    """The new time, with its offset."""
    notAfter: NotRequired[datetime | str]
    """When it fails instead."""


MessageToSend: TypeAlias = "SendText | SendImage | SendVideo | SendAudio | SendDocument | SendSticker | SendLocation | SendContacts | SendReaction | SendTemplate | SendInteractiveButton | SendInteractiveList | SendInteractiveProduct | SendInteractiveProductList | SendInteractiveCarousel | SendInteractiveCatalogMessage | SendInteractiveFlow | SendInteractiveCtaUrl | SendInteractiveLocationRequestMessage | SendInteractiveAddressMessage | SendInteractiveRequestContactInfo | SendInteractiveCallPermissionRequest | SendInteractiveVoiceCall | SendInteractiveOrderDetails | SendInteractiveOrderStatus"


class NewBroadcast(TypedDict):
    name: str
    """For people."""
    phoneNumberId: str
    """The number that it leaves from."""
    template: NewBroadcastTemplate
    """Upstream’s own object of a template message, with the components that are the same for all recipients."""
    sendAt: NotRequired[datetime | str]
    """Once started, it begins then, with its offset: 30 seconds to 35 days ahead. Left out: at its start."""


class NewBroadcastTemplate(TypedDict):
    """Upstream’s own object of a template message, with the components that are the same for all recipients."""

    name: str
    language: NewBroadcastTemplateLanguage


class NewBroadcastTemplateLanguage(TypedDict):
    code: str


class NewOptOut(TypedDict):
    customer: str
    """A phone number in any usual form, or a business-scoped user id."""
    phoneNumberId: NotRequired[str]
    """At this number only; without it at all."""
    scope: Literal["marketing", "all"]
    reason: NotRequired[str]
    """For people; erased with the customer."""


class NewOptOutWords(TypedDict):
    optOutWords: NotRequired[list[str]]
    """The words that end marketing. Left out: as before."""
    optInWords: NotRequired[list[str]]
    """The words that begin it again; none of the others. Left out: as before."""


class NewRecipients(TypedDict):
    recipients: list[NewRecipientsRecipientsItem]


class NewRecipientsRecipientsItem(TypedDict):
    to: str
    """A phone number in any usual form, or a business-scoped user id."""
    parameters: NotRequired[list[str] | dict[str, str]]
    """The variables of the body of the template: by their place, or by their names."""
    ref: NotRequired[str]
    """Your own name for the recipient."""


class NewWebhookEndpoint(TypedDict):
    url: str
    description: NotRequired[str | None]
    eventTypes: NotRequired[list[Literal["message", "status", "payment", "order", "media.ready", "test", "window.closing", "preference"] | str] | None]
    phoneNumberIds: NotRequired[list[str] | None]
    filter: NotRequired[list[str] | None]
    format: NotRequired[Literal["heliograph", "meta"] | None]
    windowClosingMinutes: NotRequired[int | None]
    customHeaders: NotRequired[dict[str, str | None] | None]
    appSecret: NotRequired[str]
    """For the format `meta`: the secret of `X-Hub-Signature-256`, a text of at least 16 characters. Without it, one is generated."""
    verifyToken: NotRequired[str]
    """For the format `meta`: the URL is verified with this token first, as the upstream platform does it (`hub.challenge`). It is not stored."""
    retryScheduleSeconds: NotRequired[list[int] | None]
    timeoutMs: NotRequired[int | None]
    asymmetricSignature: NotRequired[Literal["none", "ed25519"] | None]
    maxInFlight: NotRequired[int | None]
    rateLimitPerSecond: NotRequired[int | None]
    blockLimitSeconds: NotRequired[int | None]
    deliveryWorkflows: NotRequired[Literal["auto", "always"] | None]
    alwaysWorkflowsFor: NotRequired[list[Literal["message", "status", "payment", "order", "media.ready", "test", "window.closing", "preference"] | str] | None]
    orderScope: NotRequired[Literal["event", "conversation", "endpoint"] | None]
    bufferSeconds: NotRequired[int | None]
    bufferMaxSeconds: NotRequired[int | None]
    bufferMaxMessages: NotRequired[int | None]
    bufferTypes: NotRequired[list[Literal["text", "image", "video", "audio", "document", "sticker", "location", "contacts", "button", "interactive", "reaction"]] | None]


class OptOutEnd(TypedDict):
    customer: str
    """A phone number in any usual form, or a business-scoped user id."""
    phoneNumberId: NotRequired[str]
    """At this number only; without it at all."""
    evidence: str
    """How the customer agreed to messages again; without personal data."""


class OptOutSearch(TypedDict):
    limit: NotRequired[int]
    """How many entries a page has at most."""
    cursor: NotRequired[str]
    """`nextCursor` of the previous page, with the same filters. Left out: the first page."""
    customer: NotRequired[str]
    """A phone number in any usual form, or a business-scoped user id."""
    phoneNumberId: NotRequired[str]
    """Only those that hold at this number."""
    source: NotRequired[Literal["upstream", "error_131050", "keyword", "api", "portal"]]


class PauseWebhookEndpointRequest(TypedDict):
    reason: NotRequired[str]


class ReplayEventRequest(TypedDict):
    endpointId: NotRequired[str]


ReplayRequest = TypedDict("ReplayRequest", {"deliveryIds": "NotRequired[list[str]]", "endpointId": "NotRequired[str]", "from": "NotRequired[datetime | str]", "to": "NotRequired[datetime | str]", "eventTypes": "NotRequired[list[Literal[\"message\", \"status\", \"payment\", \"order\", \"media.ready\", \"test\", \"window.closing\", \"preference\"] | str]]", "states": "NotRequired[list[Literal[\"delivered\", \"failed\", \"dropped\", \"not_sent\"]]]", "dryRun": "NotRequired[bool]"})


class RotateWebhookEndpointSecretRequest(TypedDict):
    overlapHours: NotRequired[float]
    secret: NotRequired[str]


class RotateWebhookEndpointSigningKeyRequest(TypedDict):
    overlapHours: NotRequired[float]


class SendAudio(TypedDict):
    phoneNumberId: str
    to: NotRequired[str]
    """A phone number with its country code, in any usual form; with the `recipient_type` `group`, the id of a group."""
    recipient: NotRequired[str]
    messaging_product: NotRequired[Literal["whatsapp"]]
    recipient_type: NotRequired[Literal["individual", "group"]]
    context: NotRequired[SendAudioContext]
    biz_opaque_callback_data: NotRequired[str]
    recipient_identity_key_hash: NotRequired[str]
    sendAt: NotRequired[datetime | str]
    """Send the message then, with its offset: 30 seconds to 35 days ahead."""
    notAfter: NotRequired[datetime | str]
    """With `sendAt`: after this time the message fails instead, up to 7 days behind `sendAt`."""
    extra: NotRequired[dict[str, Any]]
    """Members of upstream’s that stand next to the content, for clients whose types do not have them; here they give no warning."""
    type: Literal["audio"]
    audio: SendAudioAudio


class SendAudioAudio(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]
    voice: NotRequired[bool]


class SendAudioContext(TypedDict):
    message_id: str


class SendContacts(TypedDict):
    phoneNumberId: str
    to: NotRequired[str]
    """A phone number with its country code, in any usual form; with the `recipient_type` `group`, the id of a group."""
    recipient: NotRequired[str]
    messaging_product: NotRequired[Literal["whatsapp"]]
    recipient_type: NotRequired[Literal["individual", "group"]]
    context: NotRequired[SendContactsContext]
    biz_opaque_callback_data: NotRequired[str]
    recipient_identity_key_hash: NotRequired[str]
    sendAt: NotRequired[datetime | str]
    """Send the message then, with its offset: 30 seconds to 35 days ahead."""
    notAfter: NotRequired[datetime | str]
    """With `sendAt`: after this time the message fails instead, up to 7 days behind `sendAt`."""
    extra: NotRequired[dict[str, Any]]
    """Members of upstream’s that stand next to the content, for clients whose types do not have them; here they give no warning."""
    type: Literal["contacts"]
    contacts: list[SendContactsContactsItem]


class SendContactsContactsItem(TypedDict):
    name: SendContactsContactsItemName
    phones: NotRequired[list[SendContactsContactsItemPhonesItem]]
    emails: NotRequired[list[SendContactsContactsItemEmailsItem]]
    addresses: NotRequired[list[SendContactsContactsItemAddressesItem]]
    org: NotRequired[SendContactsContactsItemOrg]
    urls: NotRequired[list[SendContactsContactsItemUrlsItem]]
    birthday: NotRequired[str]


class SendContactsContactsItemAddressesItem(TypedDict):
    street: NotRequired[str]
    city: NotRequired[str]
    state: NotRequired[str]
    zip: NotRequired[str]
    country: NotRequired[str]
    country_code: NotRequired[str]
    type: NotRequired[str]


class SendContactsContactsItemEmailsItem(TypedDict):
    email: NotRequired[str]
    type: NotRequired[str]


class SendContactsContactsItemName(TypedDict):
    formatted_name: str
    first_name: NotRequired[str]
    last_name: NotRequired[str]
    middle_name: NotRequired[str]
    prefix: NotRequired[str]
    suffix: NotRequired[str]


class SendContactsContactsItemOrg(TypedDict):
    company: NotRequired[str]
    department: NotRequired[str]
    title: NotRequired[str]


class SendContactsContactsItemPhonesItem(TypedDict):
    phone: NotRequired[str]
    wa_id: NotRequired[str]
    type: NotRequired[str]


class SendContactsContactsItemUrlsItem(TypedDict):
    url: NotRequired[str]
    type: NotRequired[str]


class SendContactsContext(TypedDict):
    message_id: str


class SendDocument(TypedDict):
    phoneNumberId: str
    to: NotRequired[str]
    """A phone number with its country code, in any usual form; with the `recipient_type` `group`, the id of a group."""
    recipient: NotRequired[str]
    messaging_product: NotRequired[Literal["whatsapp"]]
    recipient_type: NotRequired[Literal["individual", "group"]]
    context: NotRequired[SendDocumentContext]
    biz_opaque_callback_data: NotRequired[str]
    recipient_identity_key_hash: NotRequired[str]
    sendAt: NotRequired[datetime | str]
    """Send the message then, with its offset: 30 seconds to 35 days ahead."""
    notAfter: NotRequired[datetime | str]
    """With `sendAt`: after this time the message fails instead, up to 7 days behind `sendAt`."""
    extra: NotRequired[dict[str, Any]]
    """Members of upstream’s that stand next to the content, for clients whose types do not have them; here they give no warning."""
    type: Literal["document"]
    document: SendDocumentDocument


class SendDocumentContext(TypedDict):
    message_id: str


class SendDocumentDocument(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]
    filename: NotRequired[str]
    caption: NotRequired[str]


class SendImage(TypedDict):
    phoneNumberId: str
    to: NotRequired[str]
    """A phone number with its country code, in any usual form; with the `recipient_type` `group`, the id of a group."""
    recipient: NotRequired[str]
    messaging_product: NotRequired[Literal["whatsapp"]]
    recipient_type: NotRequired[Literal["individual", "group"]]
    context: NotRequired[SendImageContext]
    biz_opaque_callback_data: NotRequired[str]
    recipient_identity_key_hash: NotRequired[str]
    sendAt: NotRequired[datetime | str]
    """Send the message then, with its offset: 30 seconds to 35 days ahead."""
    notAfter: NotRequired[datetime | str]
    """With `sendAt`: after this time the message fails instead, up to 7 days behind `sendAt`."""
    extra: NotRequired[dict[str, Any]]
    """Members of upstream’s that stand next to the content, for clients whose types do not have them; here they give no warning."""
    type: Literal["image"]
    image: SendImageImage


class SendImageContext(TypedDict):
    message_id: str


class SendImageImage(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]
    caption: NotRequired[str]


class SendInteractiveAddressMessage(TypedDict):
    phoneNumberId: str
    to: NotRequired[str]
    """A phone number with its country code, in any usual form; with the `recipient_type` `group`, the id of a group."""
    recipient: NotRequired[str]
    messaging_product: NotRequired[Literal["whatsapp"]]
    recipient_type: NotRequired[Literal["individual", "group"]]
    context: NotRequired[SendInteractiveAddressMessageContext]
    biz_opaque_callback_data: NotRequired[str]
    recipient_identity_key_hash: NotRequired[str]
    sendAt: NotRequired[datetime | str]
    """Send the message then, with its offset: 30 seconds to 35 days ahead."""
    notAfter: NotRequired[datetime | str]
    """With `sendAt`: after this time the message fails instead, up to 7 days behind `sendAt`."""
    extra: NotRequired[dict[str, Any]]
    """Members of upstream’s that stand next to the content, for clients whose types do not have them; here they give no warning."""
    type: Literal["interactive"]
    interactive: SendInteractiveAddressMessageInteractive


class SendInteractiveAddressMessageContext(TypedDict):
    message_id: str


class SendInteractiveAddressMessageInteractive(TypedDict):
    type: Literal["address_message"]
    header: NotRequired[SendInteractiveAddressMessageInteractiveHeader]
    body: NotRequired[SendInteractiveAddressMessageInteractiveBody]
    footer: NotRequired[SendInteractiveAddressMessageInteractiveFooter]
    action: SendInteractiveAddressMessageInteractiveAction


class SendInteractiveAddressMessageInteractiveAction(TypedDict):
    name: str
    parameters: SendInteractiveAddressMessageInteractiveActionParameters


class SendInteractiveAddressMessageInteractiveActionParameters(TypedDict):
    country: str
    values: NotRequired[dict[str, Any]]
    saved_addresses: NotRequired[list[SendInteractiveAddressMessageInteractiveActionParametersSavedAddressesItem]]
    validation_errors: NotRequired[dict[str, Any]]


class SendInteractiveAddressMessageInteractiveActionParametersSavedAddressesItem(TypedDict):
    id: str
    value: dict[str, Any]


class SendInteractiveAddressMessageInteractiveBody(TypedDict):
    text: str


class SendInteractiveAddressMessageInteractiveFooter(TypedDict):
    text: str


class SendInteractiveAddressMessageInteractiveHeader(TypedDict):
    type: str
    text: NotRequired[str]
    image: NotRequired[SendInteractiveAddressMessageInteractiveHeaderImage]
    video: NotRequired[SendInteractiveAddressMessageInteractiveHeaderVideo]
    document: NotRequired[SendInteractiveAddressMessageInteractiveHeaderDocument]


class SendInteractiveAddressMessageInteractiveHeaderDocument(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]
    filename: NotRequired[str]


class SendInteractiveAddressMessageInteractiveHeaderImage(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveAddressMessageInteractiveHeaderVideo(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveButton(TypedDict):
    phoneNumberId: str
    to: NotRequired[str]
    """A phone number with its country code, in any usual form; with the `recipient_type` `group`, the id of a group."""
    recipient: NotRequired[str]
    messaging_product: NotRequired[Literal["whatsapp"]]
    recipient_type: NotRequired[Literal["individual", "group"]]
    context: NotRequired[SendInteractiveButtonContext]
    biz_opaque_callback_data: NotRequired[str]
    recipient_identity_key_hash: NotRequired[str]
    sendAt: NotRequired[datetime | str]
    """Send the message then, with its offset: 30 seconds to 35 days ahead."""
    notAfter: NotRequired[datetime | str]
    """With `sendAt`: after this time the message fails instead, up to 7 days behind `sendAt`."""
    extra: NotRequired[dict[str, Any]]
    """Members of upstream’s that stand next to the content, for clients whose types do not have them; here they give no warning."""
    type: Literal["interactive"]
    interactive: SendInteractiveButtonInteractive


class SendInteractiveButtonContext(TypedDict):
    message_id: str


class SendInteractiveButtonInteractive(TypedDict):
    type: Literal["button"]
    header: NotRequired[SendInteractiveButtonInteractiveHeader]
    body: NotRequired[SendInteractiveButtonInteractiveBody]
    footer: NotRequired[SendInteractiveButtonInteractiveFooter]
    action: SendInteractiveButtonInteractiveAction


class SendInteractiveButtonInteractiveAction(TypedDict):
    buttons: list[SendInteractiveButtonInteractiveActionButtonsItem]


class SendInteractiveButtonInteractiveActionButtonsItem(TypedDict):
    type: str
    reply: SendInteractiveButtonInteractiveActionButtonsItemReply


class SendInteractiveButtonInteractiveActionButtonsItemReply(TypedDict):
    id: str
    title: str


class SendInteractiveButtonInteractiveBody(TypedDict):
    text: str


class SendInteractiveButtonInteractiveFooter(TypedDict):
    text: str


class SendInteractiveButtonInteractiveHeader(TypedDict):
    type: str
    text: NotRequired[str]
    image: NotRequired[SendInteractiveButtonInteractiveHeaderImage]
    video: NotRequired[SendInteractiveButtonInteractiveHeaderVideo]
    document: NotRequired[SendInteractiveButtonInteractiveHeaderDocument]


class SendInteractiveButtonInteractiveHeaderDocument(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]
    filename: NotRequired[str]


class SendInteractiveButtonInteractiveHeaderImage(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveButtonInteractiveHeaderVideo(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveCallPermissionRequest(TypedDict):
    phoneNumberId: str
    to: NotRequired[str]
    """A phone number with its country code, in any usual form; with the `recipient_type` `group`, the id of a group."""
    recipient: NotRequired[str]
    messaging_product: NotRequired[Literal["whatsapp"]]
    recipient_type: NotRequired[Literal["individual", "group"]]
    context: NotRequired[SendInteractiveCallPermissionRequestContext]
    biz_opaque_callback_data: NotRequired[str]
    recipient_identity_key_hash: NotRequired[str]
    sendAt: NotRequired[datetime | str]
    """Send the message then, with its offset: 30 seconds to 35 days ahead."""
    notAfter: NotRequired[datetime | str]
    """With `sendAt`: after this time the message fails instead, up to 7 days behind `sendAt`."""
    extra: NotRequired[dict[str, Any]]
    """Members of upstream’s that stand next to the content, for clients whose types do not have them; here they give no warning."""
    type: Literal["interactive"]
    interactive: SendInteractiveCallPermissionRequestInteractive


class SendInteractiveCallPermissionRequestContext(TypedDict):
    message_id: str


class SendInteractiveCallPermissionRequestInteractive(TypedDict):
    type: Literal["call_permission_request"]
    header: NotRequired[SendInteractiveCallPermissionRequestInteractiveHeader]
    body: NotRequired[SendInteractiveCallPermissionRequestInteractiveBody]
    footer: NotRequired[SendInteractiveCallPermissionRequestInteractiveFooter]
    action: SendInteractiveCallPermissionRequestInteractiveAction


class SendInteractiveCallPermissionRequestInteractiveAction(TypedDict):
    name: str


class SendInteractiveCallPermissionRequestInteractiveBody(TypedDict):
    text: str


class SendInteractiveCallPermissionRequestInteractiveFooter(TypedDict):
    text: str


class SendInteractiveCallPermissionRequestInteractiveHeader(TypedDict):
    type: str
    text: NotRequired[str]
    image: NotRequired[SendInteractiveCallPermissionRequestInteractiveHeaderImage]
    video: NotRequired[SendInteractiveCallPermissionRequestInteractiveHeaderVideo]
    document: NotRequired[SendInteractiveCallPermissionRequestInteractiveHeaderDocument]


class SendInteractiveCallPermissionRequestInteractiveHeaderDocument(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]
    filename: NotRequired[str]


class SendInteractiveCallPermissionRequestInteractiveHeaderImage(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveCallPermissionRequestInteractiveHeaderVideo(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveCarousel(TypedDict):
    phoneNumberId: str
    to: NotRequired[str]
    """A phone number with its country code, in any usual form; with the `recipient_type` `group`, the id of a group."""
    recipient: NotRequired[str]
    messaging_product: NotRequired[Literal["whatsapp"]]
    recipient_type: NotRequired[Literal["individual", "group"]]
    context: NotRequired[SendInteractiveCarouselContext]
    biz_opaque_callback_data: NotRequired[str]
    recipient_identity_key_hash: NotRequired[str]
    sendAt: NotRequired[datetime | str]
    """Send the message then, with its offset: 30 seconds to 35 days ahead."""
    notAfter: NotRequired[datetime | str]
    """With `sendAt`: after this time the message fails instead, up to 7 days behind `sendAt`."""
    extra: NotRequired[dict[str, Any]]
    """Members of upstream’s that stand next to the content, for clients whose types do not have them; here they give no warning."""
    type: Literal["interactive"]
    interactive: SendInteractiveCarouselInteractive


class SendInteractiveCarouselContext(TypedDict):
    message_id: str


class SendInteractiveCarouselInteractive(TypedDict):
    type: Literal["carousel"]
    header: NotRequired[SendInteractiveCarouselInteractiveHeader]
    body: NotRequired[SendInteractiveCarouselInteractiveBody]
    footer: NotRequired[SendInteractiveCarouselInteractiveFooter]
    action: SendInteractiveCarouselInteractiveAction


class SendInteractiveCarouselInteractiveAction(TypedDict):
    cards: list[SendInteractiveCarouselInteractiveActionCardsItem]


class SendInteractiveCarouselInteractiveActionCardsItem(TypedDict):
    card_index: int
    type: NotRequired[str]
    header: NotRequired[SendInteractiveCarouselInteractiveActionCardsItemHeader]
    body: NotRequired[SendInteractiveCarouselInteractiveActionCardsItemBody]
    action: SendInteractiveCarouselInteractiveActionCardsItemAction


class SendInteractiveCarouselInteractiveActionCardsItemAction(TypedDict):
    name: NotRequired[str]
    parameters: NotRequired[SendInteractiveCarouselInteractiveActionCardsItemActionParameters]
    buttons: NotRequired[list[SendInteractiveCarouselInteractiveActionCardsItemActionButtonsItem]]
    catalog_id: NotRequired[str]
    product_retailer_id: NotRequired[str]


class SendInteractiveCarouselInteractiveActionCardsItemActionButtonsItem(TypedDict):
    type: str
    quick_reply: SendInteractiveCarouselInteractiveActionCardsItemActionButtonsItemQuickReply


class SendInteractiveCarouselInteractiveActionCardsItemActionButtonsItemQuickReply(TypedDict):
    id: str
    title: str


class SendInteractiveCarouselInteractiveActionCardsItemActionParameters(TypedDict):
    display_text: str
    url: str


class SendInteractiveCarouselInteractiveActionCardsItemBody(TypedDict):
    text: str


class SendInteractiveCarouselInteractiveActionCardsItemHeader(TypedDict):
    type: str
    text: NotRequired[str]
    image: NotRequired[SendInteractiveCarouselInteractiveActionCardsItemHeaderImage]
    video: NotRequired[SendInteractiveCarouselInteractiveActionCardsItemHeaderVideo]
    document: NotRequired[SendInteractiveCarouselInteractiveActionCardsItemHeaderDocument]


class SendInteractiveCarouselInteractiveActionCardsItemHeaderDocument(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]
    filename: NotRequired[str]


class SendInteractiveCarouselInteractiveActionCardsItemHeaderImage(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveCarouselInteractiveActionCardsItemHeaderVideo(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveCarouselInteractiveBody(TypedDict):
    text: str


class SendInteractiveCarouselInteractiveFooter(TypedDict):
    text: str


class SendInteractiveCarouselInteractiveHeader(TypedDict):
    type: str
    text: NotRequired[str]
    image: NotRequired[SendInteractiveCarouselInteractiveHeaderImage]
    video: NotRequired[SendInteractiveCarouselInteractiveHeaderVideo]
    document: NotRequired[SendInteractiveCarouselInteractiveHeaderDocument]


class SendInteractiveCarouselInteractiveHeaderDocument(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]
    filename: NotRequired[str]


class SendInteractiveCarouselInteractiveHeaderImage(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveCarouselInteractiveHeaderVideo(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveCatalogMessage(TypedDict):
    phoneNumberId: str
    to: NotRequired[str]
    """A phone number with its country code, in any usual form; with the `recipient_type` `group`, the id of a group."""
    recipient: NotRequired[str]
    messaging_product: NotRequired[Literal["whatsapp"]]
    recipient_type: NotRequired[Literal["individual", "group"]]
    context: NotRequired[SendInteractiveCatalogMessageContext]
    biz_opaque_callback_data: NotRequired[str]
    recipient_identity_key_hash: NotRequired[str]
    sendAt: NotRequired[datetime | str]
    """Send the message then, with its offset: 30 seconds to 35 days ahead."""
    notAfter: NotRequired[datetime | str]
    """With `sendAt`: after this time the message fails instead, up to 7 days behind `sendAt`."""
    extra: NotRequired[dict[str, Any]]
    """Members of upstream’s that stand next to the content, for clients whose types do not have them; here they give no warning."""
    type: Literal["interactive"]
    interactive: SendInteractiveCatalogMessageInteractive


class SendInteractiveCatalogMessageContext(TypedDict):
    message_id: str


class SendInteractiveCatalogMessageInteractive(TypedDict):
    type: Literal["catalog_message"]
    header: NotRequired[SendInteractiveCatalogMessageInteractiveHeader]
    body: NotRequired[SendInteractiveCatalogMessageInteractiveBody]
    footer: NotRequired[SendInteractiveCatalogMessageInteractiveFooter]
    action: SendInteractiveCatalogMessageInteractiveAction


class SendInteractiveCatalogMessageInteractiveAction(TypedDict):
    name: str
    parameters: NotRequired[SendInteractiveCatalogMessageInteractiveActionParameters]


class SendInteractiveCatalogMessageInteractiveActionParameters(TypedDict):
    thumbnail_product_retailer_id: NotRequired[str]


class SendInteractiveCatalogMessageInteractiveBody(TypedDict):
    text: str


class SendInteractiveCatalogMessageInteractiveFooter(TypedDict):
    text: str


class SendInteractiveCatalogMessageInteractiveHeader(TypedDict):
    type: str
    text: NotRequired[str]
    image: NotRequired[SendInteractiveCatalogMessageInteractiveHeaderImage]
    video: NotRequired[SendInteractiveCatalogMessageInteractiveHeaderVideo]
    document: NotRequired[SendInteractiveCatalogMessageInteractiveHeaderDocument]


class SendInteractiveCatalogMessageInteractiveHeaderDocument(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]
    filename: NotRequired[str]


class SendInteractiveCatalogMessageInteractiveHeaderImage(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveCatalogMessageInteractiveHeaderVideo(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveCtaUrl(TypedDict):
    phoneNumberId: str
    to: NotRequired[str]
    """A phone number with its country code, in any usual form; with the `recipient_type` `group`, the id of a group."""
    recipient: NotRequired[str]
    messaging_product: NotRequired[Literal["whatsapp"]]
    recipient_type: NotRequired[Literal["individual", "group"]]
    context: NotRequired[SendInteractiveCtaUrlContext]
    biz_opaque_callback_data: NotRequired[str]
    recipient_identity_key_hash: NotRequired[str]
    sendAt: NotRequired[datetime | str]
    """Send the message then, with its offset: 30 seconds to 35 days ahead."""
    notAfter: NotRequired[datetime | str]
    """With `sendAt`: after this time the message fails instead, up to 7 days behind `sendAt`."""
    extra: NotRequired[dict[str, Any]]
    """Members of upstream’s that stand next to the content, for clients whose types do not have them; here they give no warning."""
    type: Literal["interactive"]
    interactive: SendInteractiveCtaUrlInteractive


class SendInteractiveCtaUrlContext(TypedDict):
    message_id: str


class SendInteractiveCtaUrlInteractive(TypedDict):
    type: Literal["cta_url"]
    header: NotRequired[SendInteractiveCtaUrlInteractiveHeader]
    body: NotRequired[SendInteractiveCtaUrlInteractiveBody]
    footer: NotRequired[SendInteractiveCtaUrlInteractiveFooter]
    action: SendInteractiveCtaUrlInteractiveAction


class SendInteractiveCtaUrlInteractiveAction(TypedDict):
    name: str
    parameters: SendInteractiveCtaUrlInteractiveActionParameters


class SendInteractiveCtaUrlInteractiveActionParameters(TypedDict):
    display_text: str
    url: str


class SendInteractiveCtaUrlInteractiveBody(TypedDict):
    text: str


class SendInteractiveCtaUrlInteractiveFooter(TypedDict):
    text: str


class SendInteractiveCtaUrlInteractiveHeader(TypedDict):
    type: str
    text: NotRequired[str]
    image: NotRequired[SendInteractiveCtaUrlInteractiveHeaderImage]
    video: NotRequired[SendInteractiveCtaUrlInteractiveHeaderVideo]
    document: NotRequired[SendInteractiveCtaUrlInteractiveHeaderDocument]


class SendInteractiveCtaUrlInteractiveHeaderDocument(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]
    filename: NotRequired[str]


class SendInteractiveCtaUrlInteractiveHeaderImage(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveCtaUrlInteractiveHeaderVideo(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveFlow(TypedDict):
    phoneNumberId: str
    to: NotRequired[str]
    """A phone number with its country code, in any usual form; with the `recipient_type` `group`, the id of a group."""
    recipient: NotRequired[str]
    messaging_product: NotRequired[Literal["whatsapp"]]
    recipient_type: NotRequired[Literal["individual", "group"]]
    context: NotRequired[SendInteractiveFlowContext]
    biz_opaque_callback_data: NotRequired[str]
    recipient_identity_key_hash: NotRequired[str]
    sendAt: NotRequired[datetime | str]
    """Send the message then, with its offset: 30 seconds to 35 days ahead."""
    notAfter: NotRequired[datetime | str]
    """With `sendAt`: after this time the message fails instead, up to 7 days behind `sendAt`."""
    extra: NotRequired[dict[str, Any]]
    """Members of upstream’s that stand next to the content, for clients whose types do not have them; here they give no warning."""
    type: Literal["interactive"]
    interactive: SendInteractiveFlowInteractive


class SendInteractiveFlowContext(TypedDict):
    message_id: str


class SendInteractiveFlowInteractive(TypedDict):
    type: Literal["flow"]
    header: NotRequired[SendInteractiveFlowInteractiveHeader]
    body: NotRequired[SendInteractiveFlowInteractiveBody]
    footer: NotRequired[SendInteractiveFlowInteractiveFooter]
    action: SendInteractiveFlowInteractiveAction


class SendInteractiveFlowInteractiveAction(TypedDict):
    name: str
    parameters: SendInteractiveFlowInteractiveActionParameters


class SendInteractiveFlowInteractiveActionParameters(TypedDict):
    flow_message_version: str
    flow_cta: str
    flow_id: NotRequired[str]
    flow_name: NotRequired[str]
    flow_token: NotRequired[str]
    flow_action: NotRequired[str]
    flow_action_payload: NotRequired[SendInteractiveFlowInteractiveActionParametersFlowActionPayload]
    mode: NotRequired[str]


class SendInteractiveFlowInteractiveActionParametersFlowActionPayload(TypedDict):
    screen: NotRequired[str]
    data: NotRequired[dict[str, Any]]


class SendInteractiveFlowInteractiveBody(TypedDict):
    text: str


class SendInteractiveFlowInteractiveFooter(TypedDict):
    text: str


class SendInteractiveFlowInteractiveHeader(TypedDict):
    type: str
    text: NotRequired[str]
    image: NotRequired[SendInteractiveFlowInteractiveHeaderImage]
    video: NotRequired[SendInteractiveFlowInteractiveHeaderVideo]
    document: NotRequired[SendInteractiveFlowInteractiveHeaderDocument]


class SendInteractiveFlowInteractiveHeaderDocument(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]
    filename: NotRequired[str]


class SendInteractiveFlowInteractiveHeaderImage(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveFlowInteractiveHeaderVideo(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveList(TypedDict):
    phoneNumberId: str
    to: NotRequired[str]
    """A phone number with its country code, in any usual form; with the `recipient_type` `group`, the id of a group."""
    recipient: NotRequired[str]
    messaging_product: NotRequired[Literal["whatsapp"]]
    recipient_type: NotRequired[Literal["individual", "group"]]
    context: NotRequired[SendInteractiveListContext]
    biz_opaque_callback_data: NotRequired[str]
    recipient_identity_key_hash: NotRequired[str]
    sendAt: NotRequired[datetime | str]
    """Send the message then, with its offset: 30 seconds to 35 days ahead."""
    notAfter: NotRequired[datetime | str]
    """With `sendAt`: after this time the message fails instead, up to 7 days behind `sendAt`."""
    extra: NotRequired[dict[str, Any]]
    """Members of upstream’s that stand next to the content, for clients whose types do not have them; here they give no warning."""
    type: Literal["interactive"]
    interactive: SendInteractiveListInteractive


class SendInteractiveListContext(TypedDict):
    message_id: str


class SendInteractiveListInteractive(TypedDict):
    type: Literal["list"]
    header: NotRequired[SendInteractiveListInteractiveHeader]
    body: NotRequired[SendInteractiveListInteractiveBody]
    footer: NotRequired[SendInteractiveListInteractiveFooter]
    action: SendInteractiveListInteractiveAction


class SendInteractiveListInteractiveAction(TypedDict):
    button: str
    sections: list[SendInteractiveListInteractiveActionSectionsItem]


class SendInteractiveListInteractiveActionSectionsItem(TypedDict):
    title: NotRequired[str]
    rows: list[SendInteractiveListInteractiveActionSectionsItemRowsItem]


class SendInteractiveListInteractiveActionSectionsItemRowsItem(TypedDict):
    id: str
    title: str
    description: NotRequired[str]


class SendInteractiveListInteractiveBody(TypedDict):
    text: str


class SendInteractiveListInteractiveFooter(TypedDict):
    text: str


class SendInteractiveListInteractiveHeader(TypedDict):
    type: str
    text: NotRequired[str]
    image: NotRequired[SendInteractiveListInteractiveHeaderImage]
    video: NotRequired[SendInteractiveListInteractiveHeaderVideo]
    document: NotRequired[SendInteractiveListInteractiveHeaderDocument]


class SendInteractiveListInteractiveHeaderDocument(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]
    filename: NotRequired[str]


class SendInteractiveListInteractiveHeaderImage(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveListInteractiveHeaderVideo(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveLocationRequestMessage(TypedDict):
    phoneNumberId: str
    to: NotRequired[str]
    """A phone number with its country code, in any usual form; with the `recipient_type` `group`, the id of a group."""
    recipient: NotRequired[str]
    messaging_product: NotRequired[Literal["whatsapp"]]
    recipient_type: NotRequired[Literal["individual", "group"]]
    context: NotRequired[SendInteractiveLocationRequestMessageContext]
    biz_opaque_callback_data: NotRequired[str]
    recipient_identity_key_hash: NotRequired[str]
    sendAt: NotRequired[datetime | str]
    """Send the message then, with its offset: 30 seconds to 35 days ahead."""
    notAfter: NotRequired[datetime | str]
    """With `sendAt`: after this time the message fails instead, up to 7 days behind `sendAt`."""
    extra: NotRequired[dict[str, Any]]
    """Members of upstream’s that stand next to the content, for clients whose types do not have them; here they give no warning."""
    type: Literal["interactive"]
    interactive: SendInteractiveLocationRequestMessageInteractive


class SendInteractiveLocationRequestMessageContext(TypedDict):
    message_id: str


class SendInteractiveLocationRequestMessageInteractive(TypedDict):
    type: Literal["location_request_message"]
    header: NotRequired[SendInteractiveLocationRequestMessageInteractiveHeader]
    body: NotRequired[SendInteractiveLocationRequestMessageInteractiveBody]
    footer: NotRequired[SendInteractiveLocationRequestMessageInteractiveFooter]
    action: SendInteractiveLocationRequestMessageInteractiveAction


class SendInteractiveLocationRequestMessageInteractiveAction(TypedDict):
    name: str


class SendInteractiveLocationRequestMessageInteractiveBody(TypedDict):
    text: str


class SendInteractiveLocationRequestMessageInteractiveFooter(TypedDict):
    text: str


class SendInteractiveLocationRequestMessageInteractiveHeader(TypedDict):
    type: str
    text: NotRequired[str]
    image: NotRequired[SendInteractiveLocationRequestMessageInteractiveHeaderImage]
    video: NotRequired[SendInteractiveLocationRequestMessageInteractiveHeaderVideo]
    document: NotRequired[SendInteractiveLocationRequestMessageInteractiveHeaderDocument]


class SendInteractiveLocationRequestMessageInteractiveHeaderDocument(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]
    filename: NotRequired[str]


class SendInteractiveLocationRequestMessageInteractiveHeaderImage(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveLocationRequestMessageInteractiveHeaderVideo(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveOrderDetails(TypedDict):
    phoneNumberId: str
    to: NotRequired[str]
    """A phone number with its country code, in any usual form; with the `recipient_type` `group`, the id of a group."""
    recipient: NotRequired[str]
    messaging_product: NotRequired[Literal["whatsapp"]]
    recipient_type: NotRequired[Literal["individual", "group"]]
    context: NotRequired[SendInteractiveOrderDetailsContext]
    biz_opaque_callback_data: NotRequired[str]
    recipient_identity_key_hash: NotRequired[str]
    sendAt: NotRequired[datetime | str]
    """Send the message then, with its offset: 30 seconds to 35 days ahead."""
    notAfter: NotRequired[datetime | str]
    """With `sendAt`: after this time the message fails instead, up to 7 days behind `sendAt`."""
    extra: NotRequired[dict[str, Any]]
    """Members of upstream’s that stand next to the content, for clients whose types do not have them; here they give no warning."""
    type: Literal["interactive"]
    interactive: SendInteractiveOrderDetailsInteractive


class SendInteractiveOrderDetailsContext(TypedDict):
    message_id: str


class SendInteractiveOrderDetailsInteractive(TypedDict):
    type: Literal["order_details"]
    header: NotRequired[SendInteractiveOrderDetailsInteractiveHeader]
    body: NotRequired[SendInteractiveOrderDetailsInteractiveBody]
    footer: NotRequired[SendInteractiveOrderDetailsInteractiveFooter]
    action: SendInteractiveOrderDetailsInteractiveAction


class SendInteractiveOrderDetailsInteractiveAction(TypedDict):
    name: str
    parameters: SendInteractiveOrderDetailsInteractiveActionParameters


class SendInteractiveOrderDetailsInteractiveActionParameters(TypedDict):
    reference_id: str
    currency: str
    total_amount: SendInteractiveOrderDetailsInteractiveActionParametersTotalAmount
    type: NotRequired[str]
    payment_type: NotRequired[str]
    payment_configuration: NotRequired[str]
    payment_settings: NotRequired[list[SendInteractiveOrderDetailsInteractiveActionParametersPaymentSettingsItem]]
    beneficiaries: NotRequired[list[SendInteractiveOrderDetailsInteractiveActionParametersBeneficiariesItem]]
    order: NotRequired[SendInteractiveOrderDetailsInteractiveActionParametersOrder]


class SendInteractiveOrderDetailsInteractiveActionParametersBeneficiariesItem(TypedDict):
    name: NotRequired[str]
    address_line1: NotRequired[str]
    address_line2: NotRequired[str]
    city: NotRequired[str]
    zone_code: NotRequired[str]
    state: NotRequired[str]
    country: NotRequired[str]
    country_code: NotRequired[str]
    postal_code: NotRequired[str]


class SendInteractiveOrderDetailsInteractiveActionParametersOrder(TypedDict):
    status: str
    subtotal: SendInteractiveOrderDetailsInteractiveActionParametersOrderSubtotal
    type: NotRequired[str]
    catalog_id: NotRequired[str]
    items: NotRequired[list[SendInteractiveOrderDetailsInteractiveActionParametersOrderItemsItem]]
    tax: NotRequired[SendInteractiveOrderDetailsInteractiveActionParametersOrderTax]
    shipping: NotRequired[SendInteractiveOrderDetailsInteractiveActionParametersOrderShipping]
    discount: NotRequired[SendInteractiveOrderDetailsInteractiveActionParametersOrderDiscount]
    expiration: NotRequired[SendInteractiveOrderDetailsInteractiveActionParametersOrderExpiration]


class SendInteractiveOrderDetailsInteractiveActionParametersOrderDiscount(TypedDict):
    value: int
    offset: int
    description: NotRequired[str]
    discount_program_name: NotRequired[str]


class SendInteractiveOrderDetailsInteractiveActionParametersOrderExpiration(TypedDict):
    timestamp: str
    description: NotRequired[str]


class SendInteractiveOrderDetailsInteractiveActionParametersOrderItemsItem(TypedDict):
    name: str
    amount: SendInteractiveOrderDetailsInteractiveActionParametersOrderItemsItemAmount
    quantity: int
    retailer_id: NotRequired[str]
    image: NotRequired[SendInteractiveOrderDetailsInteractiveActionParametersOrderItemsItemImage]
    sale_amount: NotRequired[SendInteractiveOrderDetailsInteractiveActionParametersOrderItemsItemSaleAmount]
    country_of_origin: NotRequired[str]
    importer_name: NotRequired[str]
    importer_address: NotRequired[SendInteractiveOrderDetailsInteractiveActionParametersOrderItemsItemImporterAddress]


class SendInteractiveOrderDetailsInteractiveActionParametersOrderItemsItemAmount(TypedDict):
    value: int
    offset: int


class SendInteractiveOrderDetailsInteractiveActionParametersOrderItemsItemImage(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveOrderDetailsInteractiveActionParametersOrderItemsItemImporterAddress(TypedDict):
    name: NotRequired[str]
    address_line1: NotRequired[str]
    address_line2: NotRequired[str]
    city: NotRequired[str]
    zone_code: NotRequired[str]
    state: NotRequired[str]
    country: NotRequired[str]
    country_code: NotRequired[str]
    postal_code: NotRequired[str]


class SendInteractiveOrderDetailsInteractiveActionParametersOrderItemsItemSaleAmount(TypedDict):
    value: int
    offset: int


class SendInteractiveOrderDetailsInteractiveActionParametersOrderShipping(TypedDict):
    value: int
    offset: int
    description: NotRequired[str]


class SendInteractiveOrderDetailsInteractiveActionParametersOrderSubtotal(TypedDict):
    value: int
    offset: int


class SendInteractiveOrderDetailsInteractiveActionParametersOrderTax(TypedDict):
    value: int
    offset: int
    description: NotRequired[str]


class SendInteractiveOrderDetailsInteractiveActionParametersPaymentSettingsItem(TypedDict):
    type: str
    payment_gateway: NotRequired[SendInteractiveOrderDetailsInteractiveActionParametersPaymentSettingsItemPaymentGateway]
    upi_intent_link: NotRequired[SendInteractiveOrderDetailsInteractiveActionParametersPaymentSettingsItemUpiIntentLink]
    payment_link: NotRequired[SendInteractiveOrderDetailsInteractiveActionParametersPaymentSettingsItemPaymentLink]
    pix_dynamic_code: NotRequired[SendInteractiveOrderDetailsInteractiveActionParametersPaymentSettingsItemPixDynamicCode]
    boleto: NotRequired[SendInteractiveOrderDetailsInteractiveActionParametersPaymentSettingsItemBoleto]
    offsite_card_pay: NotRequired[SendInteractiveOrderDetailsInteractiveActionParametersPaymentSettingsItemOffsiteCardPay]


class SendInteractiveOrderDetailsInteractiveActionParametersPaymentSettingsItemBoleto(TypedDict):
    digitable_line: str


class SendInteractiveOrderDetailsInteractiveActionParametersPaymentSettingsItemOffsiteCardPay(TypedDict):
    last_four_digits: str
    credential_id: str


class SendInteractiveOrderDetailsInteractiveActionParametersPaymentSettingsItemPaymentGateway(TypedDict):
    type: str
    configuration_name: str
    preferred_payment_methods: NotRequired[list[SendInteractiveOrderDetailsInteractiveActionParametersPaymentSettingsItemPaymentGatewayPreferredPaymentMethodsItem]]
    enabled_payment_options: NotRequired[list[str]]
    razorpay: NotRequired[SendInteractiveOrderDetailsInteractiveActionParametersPaymentSettingsItemPaymentGatewayRazorpay]
    payu: NotRequired[dict[str, Any]]
    billdesk: NotRequired[dict[str, Any]]
    zaakpay: NotRequired[dict[str, Any]]


class SendInteractiveOrderDetailsInteractiveActionParametersPaymentSettingsItemPaymentGatewayPreferredPaymentMethodsItem(TypedDict):
    method: str


class SendInteractiveOrderDetailsInteractiveActionParametersPaymentSettingsItemPaymentGatewayRazorpay(TypedDict):
    receipt: NotRequired[str]
    notes: NotRequired[dict[str, Any]]


class SendInteractiveOrderDetailsInteractiveActionParametersPaymentSettingsItemPaymentLink(TypedDict):
    uri: str


class SendInteractiveOrderDetailsInteractiveActionParametersPaymentSettingsItemPixDynamicCode(TypedDict):
    code: str
    merchant_name: str
    key: str
    key_type: str


class SendInteractiveOrderDetailsInteractiveActionParametersPaymentSettingsItemUpiIntentLink(TypedDict):
    link: str


class SendInteractiveOrderDetailsInteractiveActionParametersTotalAmount(TypedDict):
    value: int
    offset: int


class SendInteractiveOrderDetailsInteractiveBody(TypedDict):
    text: str


class SendInteractiveOrderDetailsInteractiveFooter(TypedDict):
    text: str


class SendInteractiveOrderDetailsInteractiveHeader(TypedDict):
    type: str
    text: NotRequired[str]
    image: NotRequired[SendInteractiveOrderDetailsInteractiveHeaderImage]
    video: NotRequired[SendInteractiveOrderDetailsInteractiveHeaderVideo]
    document: NotRequired[SendInteractiveOrderDetailsInteractiveHeaderDocument]


class SendInteractiveOrderDetailsInteractiveHeaderDocument(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]
    filename: NotRequired[str]


class SendInteractiveOrderDetailsInteractiveHeaderImage(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveOrderDetailsInteractiveHeaderVideo(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveOrderStatus(TypedDict):
    phoneNumberId: str
    to: NotRequired[str]
    """A phone number with its country code, in any usual form; with the `recipient_type` `group`, the id of a group."""
    recipient: NotRequired[str]
    messaging_product: NotRequired[Literal["whatsapp"]]
    recipient_type: NotRequired[Literal["individual", "group"]]
    context: NotRequired[SendInteractiveOrderStatusContext]
    biz_opaque_callback_data: NotRequired[str]
    recipient_identity_key_hash: NotRequired[str]
    sendAt: NotRequired[datetime | str]
    """Send the message then, with its offset: 30 seconds to 35 days ahead."""
    notAfter: NotRequired[datetime | str]
    """With `sendAt`: after this time the message fails instead, up to 7 days behind `sendAt`."""
    extra: NotRequired[dict[str, Any]]
    """Members of upstream’s that stand next to the content, for clients whose types do not have them; here they give no warning."""
    type: Literal["interactive"]
    interactive: SendInteractiveOrderStatusInteractive


class SendInteractiveOrderStatusContext(TypedDict):
    message_id: str


class SendInteractiveOrderStatusInteractive(TypedDict):
    type: Literal["order_status"]
    header: NotRequired[SendInteractiveOrderStatusInteractiveHeader]
    body: NotRequired[SendInteractiveOrderStatusInteractiveBody]
    footer: NotRequired[SendInteractiveOrderStatusInteractiveFooter]
    action: SendInteractiveOrderStatusInteractiveAction


class SendInteractiveOrderStatusInteractiveAction(TypedDict):
    name: str
    parameters: SendInteractiveOrderStatusInteractiveActionParameters


class SendInteractiveOrderStatusInteractiveActionParameters(TypedDict):
    reference_id: str
    order: SendInteractiveOrderStatusInteractiveActionParametersOrder


class SendInteractiveOrderStatusInteractiveActionParametersOrder(TypedDict):
    status: str
    description: NotRequired[str]


class SendInteractiveOrderStatusInteractiveBody(TypedDict):
    text: str


class SendInteractiveOrderStatusInteractiveFooter(TypedDict):
    text: str


class SendInteractiveOrderStatusInteractiveHeader(TypedDict):
    type: str
    text: NotRequired[str]
    image: NotRequired[SendInteractiveOrderStatusInteractiveHeaderImage]
    video: NotRequired[SendInteractiveOrderStatusInteractiveHeaderVideo]
    document: NotRequired[SendInteractiveOrderStatusInteractiveHeaderDocument]


class SendInteractiveOrderStatusInteractiveHeaderDocument(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]
    filename: NotRequired[str]


class SendInteractiveOrderStatusInteractiveHeaderImage(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveOrderStatusInteractiveHeaderVideo(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveProduct(TypedDict):
    phoneNumberId: str
    to: NotRequired[str]
    """A phone number with its country code, in any usual form; with the `recipient_type` `group`, the id of a group."""
    recipient: NotRequired[str]
    messaging_product: NotRequired[Literal["whatsapp"]]
    recipient_type: NotRequired[Literal["individual", "group"]]
    context: NotRequired[SendInteractiveProductContext]
    biz_opaque_callback_data: NotRequired[str]
    recipient_identity_key_hash: NotRequired[str]
    sendAt: NotRequired[datetime | str]
    """Send the message then, with its offset: 30 seconds to 35 days ahead."""
    notAfter: NotRequired[datetime | str]
    """With `sendAt`: after this time the message fails instead, up to 7 days behind `sendAt`."""
    extra: NotRequired[dict[str, Any]]
    """Members of upstream’s that stand next to the content, for clients whose types do not have them; here they give no warning."""
    type: Literal["interactive"]
    interactive: SendInteractiveProductInteractive


class SendInteractiveProductContext(TypedDict):
    message_id: str


class SendInteractiveProductInteractive(TypedDict):
    type: Literal["product"]
    header: NotRequired[SendInteractiveProductInteractiveHeader]
    body: NotRequired[SendInteractiveProductInteractiveBody]
    footer: NotRequired[SendInteractiveProductInteractiveFooter]
    action: SendInteractiveProductInteractiveAction


class SendInteractiveProductInteractiveAction(TypedDict):
    catalog_id: str
    product_retailer_id: str


class SendInteractiveProductInteractiveBody(TypedDict):
    text: str


class SendInteractiveProductInteractiveFooter(TypedDict):
    text: str


class SendInteractiveProductInteractiveHeader(TypedDict):
    type: str
    text: NotRequired[str]
    image: NotRequired[SendInteractiveProductInteractiveHeaderImage]
    video: NotRequired[SendInteractiveProductInteractiveHeaderVideo]
    document: NotRequired[SendInteractiveProductInteractiveHeaderDocument]


class SendInteractiveProductInteractiveHeaderDocument(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]
    filename: NotRequired[str]


class SendInteractiveProductInteractiveHeaderImage(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveProductInteractiveHeaderVideo(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveProductList(TypedDict):
    phoneNumberId: str
    to: NotRequired[str]
    """A phone number with its country code, in any usual form; with the `recipient_type` `group`, the id of a group."""
    recipient: NotRequired[str]
    messaging_product: NotRequired[Literal["whatsapp"]]
    recipient_type: NotRequired[Literal["individual", "group"]]
    context: NotRequired[SendInteractiveProductListContext]
    biz_opaque_callback_data: NotRequired[str]
    recipient_identity_key_hash: NotRequired[str]
    sendAt: NotRequired[datetime | str]
    """Send the message then, with its offset: 30 seconds to 35 days ahead."""
    notAfter: NotRequired[datetime | str]
    """With `sendAt`: after this time the message fails instead, up to 7 days behind `sendAt`."""
    extra: NotRequired[dict[str, Any]]
    """Members of upstream’s that stand next to the content, for clients whose types do not have them; here they give no warning."""
    type: Literal["interactive"]
    interactive: SendInteractiveProductListInteractive


class SendInteractiveProductListContext(TypedDict):
    message_id: str


class SendInteractiveProductListInteractive(TypedDict):
    type: Literal["product_list"]
    header: NotRequired[SendInteractiveProductListInteractiveHeader]
    body: NotRequired[SendInteractiveProductListInteractiveBody]
    footer: NotRequired[SendInteractiveProductListInteractiveFooter]
    action: SendInteractiveProductListInteractiveAction


class SendInteractiveProductListInteractiveAction(TypedDict):
    catalog_id: str
    sections: list[SendInteractiveProductListInteractiveActionSectionsItem]


class SendInteractiveProductListInteractiveActionSectionsItem(TypedDict):
    title: NotRequired[str]
    product_items: list[SendInteractiveProductListInteractiveActionSectionsItemProductItemsItem]


class SendInteractiveProductListInteractiveActionSectionsItemProductItemsItem(TypedDict):
    product_retailer_id: str


class SendInteractiveProductListInteractiveBody(TypedDict):
    text: str


class SendInteractiveProductListInteractiveFooter(TypedDict):
    text: str


class SendInteractiveProductListInteractiveHeader(TypedDict):
    type: str
    text: NotRequired[str]
    image: NotRequired[SendInteractiveProductListInteractiveHeaderImage]
    video: NotRequired[SendInteractiveProductListInteractiveHeaderVideo]
    document: NotRequired[SendInteractiveProductListInteractiveHeaderDocument]


class SendInteractiveProductListInteractiveHeaderDocument(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]
    filename: NotRequired[str]


class SendInteractiveProductListInteractiveHeaderImage(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveProductListInteractiveHeaderVideo(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveRequestContactInfo(TypedDict):
    phoneNumberId: str
    to: NotRequired[str]
    """A phone number with its country code, in any usual form; with the `recipient_type` `group`, the id of a group."""
    recipient: NotRequired[str]
    messaging_product: NotRequired[Literal["whatsapp"]]
    recipient_type: NotRequired[Literal["individual", "group"]]
    context: NotRequired[SendInteractiveRequestContactInfoContext]
    biz_opaque_callback_data: NotRequired[str]
    recipient_identity_key_hash: NotRequired[str]
    sendAt: NotRequired[datetime | str]
    """Send the message then, with its offset: 30 seconds to 35 days ahead."""
    notAfter: NotRequired[datetime | str]
    """With `sendAt`: after this time the message fails instead, up to 7 days behind `sendAt`."""
    extra: NotRequired[dict[str, Any]]
    """Members of upstream’s that stand next to the content, for clients whose types do not have them; here they give no warning."""
    type: Literal["interactive"]
    interactive: SendInteractiveRequestContactInfoInteractive


class SendInteractiveRequestContactInfoContext(TypedDict):
    message_id: str


class SendInteractiveRequestContactInfoInteractive(TypedDict):
    type: Literal["request_contact_info"]
    header: NotRequired[SendInteractiveRequestContactInfoInteractiveHeader]
    body: NotRequired[SendInteractiveRequestContactInfoInteractiveBody]
    footer: NotRequired[SendInteractiveRequestContactInfoInteractiveFooter]
    action: SendInteractiveRequestContactInfoInteractiveAction


class SendInteractiveRequestContactInfoInteractiveAction(TypedDict):
    name: str


class SendInteractiveRequestContactInfoInteractiveBody(TypedDict):
    text: str


class SendInteractiveRequestContactInfoInteractiveFooter(TypedDict):
    text: str


class SendInteractiveRequestContactInfoInteractiveHeader(TypedDict):
    type: str
    text: NotRequired[str]
    image: NotRequired[SendInteractiveRequestContactInfoInteractiveHeaderImage]
    video: NotRequired[SendInteractiveRequestContactInfoInteractiveHeaderVideo]
    document: NotRequired[SendInteractiveRequestContactInfoInteractiveHeaderDocument]


class SendInteractiveRequestContactInfoInteractiveHeaderDocument(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]
    filename: NotRequired[str]


class SendInteractiveRequestContactInfoInteractiveHeaderImage(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveRequestContactInfoInteractiveHeaderVideo(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveVoiceCall(TypedDict):
    phoneNumberId: str
    to: NotRequired[str]
    """A phone number with its country code, in any usual form; with the `recipient_type` `group`, the id of a group."""
    recipient: NotRequired[str]
    messaging_product: NotRequired[Literal["whatsapp"]]
    recipient_type: NotRequired[Literal["individual", "group"]]
    context: NotRequired[SendInteractiveVoiceCallContext]
    biz_opaque_callback_data: NotRequired[str]
    recipient_identity_key_hash: NotRequired[str]
    sendAt: NotRequired[datetime | str]
    """Send the message then, with its offset: 30 seconds to 35 days ahead."""
    notAfter: NotRequired[datetime | str]
    """With `sendAt`: after this time the message fails instead, up to 7 days behind `sendAt`."""
    extra: NotRequired[dict[str, Any]]
    """Members of upstream’s that stand next to the content, for clients whose types do not have them; here they give no warning."""
    type: Literal["interactive"]
    interactive: SendInteractiveVoiceCallInteractive


class SendInteractiveVoiceCallContext(TypedDict):
    message_id: str


class SendInteractiveVoiceCallInteractive(TypedDict):
    type: Literal["voice_call"]
    header: NotRequired[SendInteractiveVoiceCallInteractiveHeader]
    body: NotRequired[SendInteractiveVoiceCallInteractiveBody]
    footer: NotRequired[SendInteractiveVoiceCallInteractiveFooter]
    action: SendInteractiveVoiceCallInteractiveAction


class SendInteractiveVoiceCallInteractiveAction(TypedDict):
    name: str
    parameters: NotRequired[SendInteractiveVoiceCallInteractiveActionParameters]


class SendInteractiveVoiceCallInteractiveActionParameters(TypedDict):
    display_text: NotRequired[str]
    ttl_minutes: NotRequired[int]
    payload: NotRequired[str]


class SendInteractiveVoiceCallInteractiveBody(TypedDict):
    text: str


class SendInteractiveVoiceCallInteractiveFooter(TypedDict):
    text: str


class SendInteractiveVoiceCallInteractiveHeader(TypedDict):
    type: str
    text: NotRequired[str]
    image: NotRequired[SendInteractiveVoiceCallInteractiveHeaderImage]
    video: NotRequired[SendInteractiveVoiceCallInteractiveHeaderVideo]
    document: NotRequired[SendInteractiveVoiceCallInteractiveHeaderDocument]


class SendInteractiveVoiceCallInteractiveHeaderDocument(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]
    filename: NotRequired[str]


class SendInteractiveVoiceCallInteractiveHeaderImage(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendInteractiveVoiceCallInteractiveHeaderVideo(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendLocation(TypedDict):
    phoneNumberId: str
    to: NotRequired[str]
    """A phone number with its country code, in any usual form; with the `recipient_type` `group`, the id of a group."""
    recipient: NotRequired[str]
    messaging_product: NotRequired[Literal["whatsapp"]]
    recipient_type: NotRequired[Literal["individual", "group"]]
    context: NotRequired[SendLocationContext]
    biz_opaque_callback_data: NotRequired[str]
    recipient_identity_key_hash: NotRequired[str]
    sendAt: NotRequired[datetime | str]
    """Send the message then, with its offset: 30 seconds to 35 days ahead."""
    notAfter: NotRequired[datetime | str]
    """With `sendAt`: after this time the message fails instead, up to 7 days behind `sendAt`."""
    extra: NotRequired[dict[str, Any]]
    """Members of upstream’s that stand next to the content, for clients whose types do not have them; here they give no warning."""
    type: Literal["location"]
    location: SendLocationLocation


class SendLocationContext(TypedDict):
    message_id: str


class SendLocationLocation(TypedDict):
    latitude: float | str
    longitude: float | str
    name: NotRequired[str]
    address: NotRequired[str]


class SendReaction(TypedDict):
    phoneNumberId: str
    to: NotRequired[str]
    """A phone number with its country code, in any usual form; with the `recipient_type` `group`, the id of a group."""
    recipient: NotRequired[str]
    messaging_product: NotRequired[Literal["whatsapp"]]
    recipient_type: NotRequired[Literal["individual", "group"]]
    context: NotRequired[SendReactionContext]
    biz_opaque_callback_data: NotRequired[str]
    recipient_identity_key_hash: NotRequired[str]
    sendAt: NotRequired[datetime | str]
    """Send the message then, with its offset: 30 seconds to 35 days ahead."""
    notAfter: NotRequired[datetime | str]
    """With `sendAt`: after this time the message fails instead, up to 7 days behind `sendAt`."""
    extra: NotRequired[dict[str, Any]]
    """Members of upstream’s that stand next to the content, for clients whose types do not have them; here they give no warning."""
    type: Literal["reaction"]
    reaction: SendReactionReaction


class SendReactionContext(TypedDict):
    message_id: str


class SendReactionReaction(TypedDict):
    message_id: str
    emoji: NotRequired[str]


class SendSticker(TypedDict):
    phoneNumberId: str
    to: NotRequired[str]
    """A phone number with its country code, in any usual form; with the `recipient_type` `group`, the id of a group."""
    recipient: NotRequired[str]
    messaging_product: NotRequired[Literal["whatsapp"]]
    recipient_type: NotRequired[Literal["individual", "group"]]
    context: NotRequired[SendStickerContext]
    biz_opaque_callback_data: NotRequired[str]
    recipient_identity_key_hash: NotRequired[str]
    sendAt: NotRequired[datetime | str]
    """Send the message then, with its offset: 30 seconds to 35 days ahead."""
    notAfter: NotRequired[datetime | str]
    """With `sendAt`: after this time the message fails instead, up to 7 days behind `sendAt`."""
    extra: NotRequired[dict[str, Any]]
    """Members of upstream’s that stand next to the content, for clients whose types do not have them; here they give no warning."""
    type: Literal["sticker"]
    sticker: SendStickerSticker


class SendStickerContext(TypedDict):
    message_id: str


class SendStickerSticker(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendTemplate(TypedDict):
    phoneNumberId: str
    to: NotRequired[str]
    """A phone number with its country code, in any usual form; with the `recipient_type` `group`, the id of a group."""
    recipient: NotRequired[str]
    messaging_product: NotRequired[Literal["whatsapp"]]
    recipient_type: NotRequired[Literal["individual", "group"]]
    context: NotRequired[SendTemplateContext]
    biz_opaque_callback_data: NotRequired[str]
    recipient_identity_key_hash: NotRequired[str]
    sendAt: NotRequired[datetime | str]
    """Send the message then, with its offset: 30 seconds to 35 days ahead."""
    notAfter: NotRequired[datetime | str]
    """With `sendAt`: after this time the message fails instead, up to 7 days behind `sendAt`."""
    extra: NotRequired[dict[str, Any]]
    """Members of upstream’s that stand next to the content, for clients whose types do not have them; here they give no warning."""
    type: Literal["template"]
    template: SendTemplateTemplate


class SendTemplateContext(TypedDict):
    message_id: str


class SendTemplateTemplate(TypedDict):
    name: str
    language: SendTemplateTemplateLanguage
    components: NotRequired[list[SendTemplateTemplateComponentsItem]]


class SendTemplateTemplateComponentsItem(TypedDict):
    type: str
    sub_type: NotRequired[str]
    index: NotRequired[int | str]
    parameters: NotRequired[list[SendTemplateTemplateComponentsItemParametersItem]]
    cards: NotRequired[list[SendTemplateTemplateComponentsItemCardsItem]]


class SendTemplateTemplateComponentsItemCardsItem(TypedDict):
    card_index: NotRequired[int]
    components: list[SendTemplateTemplateComponentsItemCardsItemComponentsItem]


class SendTemplateTemplateComponentsItemCardsItemComponentsItem(TypedDict):
    type: str
    sub_type: NotRequired[str]
    index: NotRequired[int | str]
    parameters: NotRequired[list[SendTemplateTemplateComponentsItemCardsItemComponentsItemParametersItem]]


class SendTemplateTemplateComponentsItemCardsItemComponentsItemParametersItem(TypedDict):
    type: str
    parameter_name: NotRequired[str]
    text: NotRequired[str]
    currency: NotRequired[SendTemplateTemplateComponentsItemCardsItemComponentsItemParametersItemCurrency]
    date_time: NotRequired[dict[str, Any]]
    image: NotRequired[SendTemplateTemplateComponentsItemCardsItemComponentsItemParametersItemImage]
    video: NotRequired[SendTemplateTemplateComponentsItemCardsItemComponentsItemParametersItemVideo]
    document: NotRequired[SendTemplateTemplateComponentsItemCardsItemComponentsItemParametersItemDocument]
    location: NotRequired[dict[str, Any]]
    payload: NotRequired[str]
    action: NotRequired[dict[str, Any]]
    coupon_code: NotRequired[str]
    product: NotRequired[SendTemplateTemplateComponentsItemCardsItemComponentsItemParametersItemProduct]
    limited_time_offer: NotRequired[dict[str, Any]]
    order_status: NotRequired[dict[str, Any]]


class SendTemplateTemplateComponentsItemCardsItemComponentsItemParametersItemCurrency(TypedDict):
    fallback_value: str
    code: str
    amount_1000: int


class SendTemplateTemplateComponentsItemCardsItemComponentsItemParametersItemDocument(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]
    filename: NotRequired[str]


class SendTemplateTemplateComponentsItemCardsItemComponentsItemParametersItemImage(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendTemplateTemplateComponentsItemCardsItemComponentsItemParametersItemProduct(TypedDict):
    product_retailer_id: str
    catalog_id: str


class SendTemplateTemplateComponentsItemCardsItemComponentsItemParametersItemVideo(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendTemplateTemplateComponentsItemParametersItem(TypedDict):
    type: str
    parameter_name: NotRequired[str]
    text: NotRequired[str]
    currency: NotRequired[SendTemplateTemplateComponentsItemParametersItemCurrency]
    date_time: NotRequired[dict[str, Any]]
    image: NotRequired[SendTemplateTemplateComponentsItemParametersItemImage]
    video: NotRequired[SendTemplateTemplateComponentsItemParametersItemVideo]
    document: NotRequired[SendTemplateTemplateComponentsItemParametersItemDocument]
    location: NotRequired[dict[str, Any]]
    payload: NotRequired[str]
    action: NotRequired[dict[str, Any]]
    coupon_code: NotRequired[str]
    product: NotRequired[SendTemplateTemplateComponentsItemParametersItemProduct]
    limited_time_offer: NotRequired[dict[str, Any]]
    order_status: NotRequired[dict[str, Any]]


class SendTemplateTemplateComponentsItemParametersItemCurrency(TypedDict):
    fallback_value: str
    code: str
    amount_1000: int


class SendTemplateTemplateComponentsItemParametersItemDocument(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]
    filename: NotRequired[str]


class SendTemplateTemplateComponentsItemParametersItemImage(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendTemplateTemplateComponentsItemParametersItemProduct(TypedDict):
    product_retailer_id: str
    catalog_id: str


class SendTemplateTemplateComponentsItemParametersItemVideo(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]


class SendTemplateTemplateLanguage(TypedDict):
    code: str
    policy: NotRequired[str]


class SendText(TypedDict):
    phoneNumberId: str
    to: NotRequired[str]
    """A phone number with its country code, in any usual form; with the `recipient_type` `group`, the id of a group."""
    recipient: NotRequired[str]
    messaging_product: NotRequired[Literal["whatsapp"]]
    recipient_type: NotRequired[Literal["individual", "group"]]
    context: NotRequired[SendTextContext]
    biz_opaque_callback_data: NotRequired[str]
    recipient_identity_key_hash: NotRequired[str]
    sendAt: NotRequired[datetime | str]
    """Send the message then, with its offset: 30 seconds to 35 days ahead."""
    notAfter: NotRequired[datetime | str]
    """With `sendAt`: after this time the message fails instead, up to 7 days behind `sendAt`."""
    extra: NotRequired[dict[str, Any]]
    """Members of upstream’s that stand next to the content, for clients whose types do not have them; here they give no warning."""
    type: NotRequired[Literal["text"]]
    text: SendTextText


class SendTextContext(TypedDict):
    message_id: str


class SendTextText(TypedDict):
    body: str
    preview_url: NotRequired[bool]


class SendVideo(TypedDict):
    phoneNumberId: str
    to: NotRequired[str]
    """A phone number with its country code, in any usual form; with the `recipient_type` `group`, the id of a group."""
    recipient: NotRequired[str]
    messaging_product: NotRequired[Literal["whatsapp"]]
    recipient_type: NotRequired[Literal["individual", "group"]]
    context: NotRequired[SendVideoContext]
    biz_opaque_callback_data: NotRequired[str]
    recipient_identity_key_hash: NotRequired[str]
    sendAt: NotRequired[datetime | str]
    """Send the message then, with its offset: 30 seconds to 35 days ahead."""
    notAfter: NotRequired[datetime | str]
    """With `sendAt`: after this time the message fails instead, up to 7 days behind `sendAt`."""
    extra: NotRequired[dict[str, Any]]
    """Members of upstream’s that stand next to the content, for clients whose types do not have them; here they give no warning."""
    type: Literal["video"]
    video: SendVideoVideo


class SendVideoContext(TypedDict):
    message_id: str


class SendVideoVideo(TypedDict):
    id: NotRequired[str]
    link: NotRequired[str]
    caption: NotRequired[str]


class SetOperationsUrlRequest(TypedDict):
    url: str


class TestRequest(TypedDict):
    sample: NotRequired[Literal["test", "message", "image", "location", "button", "status", "status.failed", "payment", "order", "media.ready", "window.closing", "preference"]]
    """The event to send: the `test` event unless another sample is named. Samples have made-up contents, the `phoneNumberId` `TEST_PHONE_NUMBER_ID` and an `eventId` of `test_…`."""
    eventId: NotRequired[str]
    """The `eventId` of an earlier test, to see that both count: events may share an `eventId`, and only `webhook-id` identifies a duplicate. With `sample` only."""


class WebhookEndpointChange(TypedDict):
    url: NotRequired[str]
    description: NotRequired[str | None]
    eventTypes: NotRequired[list[Literal["message", "status", "payment", "order", "media.ready", "test", "window.closing", "preference"] | str] | None]
    phoneNumberIds: NotRequired[list[str] | None]
    filter: NotRequired[list[str] | None]
    format: NotRequired[Literal["heliograph", "meta"] | None]
    windowClosingMinutes: NotRequired[int | None]
    customHeaders: NotRequired[dict[str, str | None] | None]
    appSecret: NotRequired[str]
    """For the format `meta`: the secret of `X-Hub-Signature-256`, a text of at least 16 characters. Without it, one is generated."""
    verifyToken: NotRequired[str]
    """For the format `meta`: the URL is verified with this token first, as the upstream platform does it (`hub.challenge`). It is not stored."""
    retryScheduleSeconds: NotRequired[list[int] | None]
    timeoutMs: NotRequired[int | None]
    asymmetricSignature: NotRequired[Literal["none", "ed25519"] | None]
    maxInFlight: NotRequired[int | None]
    rateLimitPerSecond: NotRequired[int | None]
    blockLimitSeconds: NotRequired[int | None]
    deliveryWorkflows: NotRequired[Literal["auto", "always"] | None]
    alwaysWorkflowsFor: NotRequired[list[Literal["message", "status", "payment", "order", "media.ready", "test", "window.closing", "preference"] | str] | None]
    orderScope: NotRequired[Literal["event", "conversation", "endpoint"] | None]
    bufferSeconds: NotRequired[int | None]
    bufferMaxSeconds: NotRequired[int | None]
    bufferMaxMessages: NotRequired[int | None]
    bufferTypes: NotRequired[list[Literal["text", "image", "video", "audio", "document", "sticker", "location", "contacts", "button", "interactive", "reaction"]] | None]
