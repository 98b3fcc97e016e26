"""Shows the newest conversation, downloads a file of it, sends a text and shows its state."""

import os

from heliograph import Heliograph

with Heliograph(os.environ["HELIOGRAPH_URL"], os.environ["HELIOGRAPH_API_KEY"]) as heliograph:
    account = heliograph.get_account_identity()
    print("account", account.business_name)

    conversation = heliograph.list_conversations(limit=1).data[0]
    messages = heliograph.list_conversation_messages(conversation.id, limit=20).data
    for message in messages:
        print(message.direction, message.type, message.message.get("text", {}).get("body", ""))

    media_url = next((message.media_url for message in messages if message.media_url), None)
    if media_url:
        print("downloaded", heliograph.download_media(media_url, "download"), "bytes")

    sent = heliograph.send_message(
        {
            "phoneNumberId": account.phone_numbers[0].phone_number_id,
            "to": os.environ["TO"],
            "type": "text",
            "text": {"body": "Your order is ready."},
        }
    )
    print("sent", sent.service_message_id, sent.state)

    details = heliograph.get_message(sent.service_message_id)
    print("state", details.state, [status.status for status in details.statuses])
