"""Uploads a file and sends it: python send_file.py mug.jpg."""

import os
import sys

from heliograph import Heliograph, HeliographError

with Heliograph(os.environ["HELIOGRAPH_URL"], os.environ["HELIOGRAPH_API_KEY"]) as heliograph:
    try:
        number = heliograph.get_account_identity().phone_numbers[0]
        media = heliograph.upload_media(sys.argv[1])
        sent = heliograph.send_message(
            {
                "phoneNumberId": number.phone_number_id,
                "to": os.environ["TO"],
                "type": "image",
                "image": {"id": media.id, "caption": "New"},
            }
        )
    except HeliographError as error:
        sys.exit(f"{error.status} {error.code}: {error}")
    print("sent", sent.state, media.mime_type, media.size_bytes)
