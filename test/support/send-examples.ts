/** One request of each kind that can be sent, without phone number and recipient. */

const amount = (value: number) => ({ value, offset: 100 });

const interactive = (type: string, rest: Record<string, unknown>) => ({
  type: 'interactive',
  interactive: { type, body: { text: 'Please choose' }, ...rest },
});

const gateway = {
  type: 'payment_gateway',
  payment_gateway: {
    type: 'razorpay',
    configuration_name: 'shop',
    razorpay: { receipt: 'r-1', notes: { order: '7' } },
    enabled_payment_options: ['upi'],
  },
};

const order = {
  status: 'pending',
  catalog_id: '77',
  items: [
    { retailer_id: 'sku-1', name: 'Cup', amount: amount(1_500), sale_amount: amount(1_000), quantity: 2 },
    { retailer_id: 'sku-2', name: 'Pot', amount: amount(3_000), quantity: 1 },
  ],
  subtotal: amount(5_000),
  tax: { ...amount(500), description: 'GST' },
  shipping: amount(200),
  discount: { ...amount(700), description: 'Welcome' },
  expiration: { timestamp: '1790000000', description: 'Offer ends' },
};

/** An invoice in Brazil, with one of its ways to pay. */
const brazilianOrder = (type: string, setting: Record<string, string>) =>
  interactive('order_details', {
    action: {
      name: 'review_and_pay',
      parameters: {
        reference_id: 'pedido-7',
        type: 'digital-goods',
        payment_type: 'br',
        payment_settings: [{ type, [type]: setting }],
        currency: 'BRL',
        total_amount: amount(50_000),
        order: {
          status: 'pending',
          tax: { ...amount(0), description: 'Isento' },
          items: [{ retailer_id: '1234567', name: 'Bolo', amount: amount(50_000), quantity: 1 }],
          subtotal: amount(50_000),
        },
      },
    },
  });

const carousel = (cards: Record<string, unknown>[]) =>
  interactive('carousel', {
    action: { cards: cards.map((card, index) => ({ card_index: index, ...card })) },
  });

const cardHeader = () => ({ type: 'image', image: { link: 'https://shop.example/a.jpg' } });

export type SendExample = { type: string } & Record<string, unknown>;

export const SEND_EXAMPLES: Record<string, SendExample> = {
  text: { type: 'text', text: { body: 'Hello 👋', preview_url: true } },
  image: { type: 'image', image: { link: 'https://shop.example/a.jpg', caption: 'New' } },
  video: { type: 'video', video: { id: '6000000000000001' } },
  audio: { type: 'audio', audio: { id: '6000000000000002', voice: true } },
  document: { type: 'document', document: { id: '6000000000000003', filename: 'bill – März.pdf' } },
  sticker: { type: 'sticker', sticker: { id: '6000000000000004' } },
  location: { type: 'location', location: { latitude: 12.97, longitude: 77.59, name: 'Shop' } },
  contacts: {
    type: 'contacts',
    contacts: [
      {
        name: { formatted_name: 'Asha Tester', first_name: 'Asha' },
        phones: [{ phone: '+12025550143', type: 'WORK', wa_id: '12025550143' }],
        birthday: '1990-02-28',
      },
    ],
  },
  reaction: { type: 'reaction', reaction: { message_id: 'wamid.HBgL', emoji: '👍' } },
  template: {
    type: 'template',
    template: {
      name: 'order_ready',
      language: { code: 'en_US' },
      components: [
        { type: 'header', parameters: [{ type: 'image', image: { link: 'https://shop.example/b.jpg' } }] },
        { type: 'body', parameters: [{ type: 'text', parameter_name: 'name', text: 'Asha' }] },
        {
          type: 'button',
          sub_type: 'quick_reply',
          index: '0',
          parameters: [{ type: 'payload', payload: 'y' }],
        },
        { type: 'carousel', cards: [{ card_index: 0, components: [{ type: 'body', parameters: [] }] }] },
      ],
    },
  },
  button: interactive('button', {
    header: { type: 'image', image: { id: '6000000000000001' } },
    footer: { text: 'Shop' },
    action: { buttons: [{ type: 'reply', reply: { id: 'yes', title: 'Yes' } }] },
  }),
  list: interactive('list', {
    header: { type: 'text', text: 'Menu' },
    action: {
      button: 'Open',
      sections: [{ title: 'Tea', rows: [{ id: 'green', title: 'Green', description: 'Fresh' }] }],
    },
  }),
  product: interactive('product', { action: { catalog_id: '77', product_retailer_id: 'sku-1' } }),
  product_list: interactive('product_list', {
    header: { type: 'text', text: 'Offers' },
    action: {
      catalog_id: '77',
      sections: [{ title: 'Cups', product_items: [{ product_retailer_id: 'sku-1' }] }],
    },
  }),
  catalog: interactive('catalog_message', {
    action: { name: 'catalog_message', parameters: { thumbnail_product_retailer_id: 'sku-1' } },
  }),
  flow: interactive('flow', {
    action: {
      name: 'flow',
      parameters: {
        flow_message_version: '3',
        flow_id: '12345',
        flow_cta: 'Book',
        flow_token: 't-1',
        flow_action: 'navigate',
        flow_action_payload: { screen: 'FIRST', data: { any: [1, { thing: true }] } },
      },
    },
  }),
  cta_url: interactive('cta_url', {
    action: { name: 'cta_url', parameters: { display_text: 'See', url: 'https://shop.example' } },
  }),
  location_request: interactive('location_request_message', { action: { name: 'send_location' } }),
  address: interactive('address_message', {
    action: { name: 'address_message', parameters: { country: 'IN', values: { name: 'Asha' } } },
  }),
  order_details: interactive('order_details', {
    action: {
      name: 'review_and_pay',
      parameters: {
        reference_id: 'order-7.a_b',
        type: 'digital-goods',
        currency: 'INR',
        total_amount: amount(5_000),
        payment_settings: [gateway],
        order,
      },
    },
  }),
  order_status: interactive('order_status', {
    action: {
      name: 'review_order',
      parameters: { reference_id: 'order-7', order: { status: 'shipped', description: 'On its way' } },
    },
  }),
  pix: brazilianOrder('pix_dynamic_code', {
    code: '00020101021226700014br.gov.bcb.pix2548pix.example.com',
    merchant_name: 'Loja',
    key: '39580525000189',
    key_type: 'CNPJ',
  }),
  boleto: brazilianOrder('boleto', { digitable_line: '03399026944140000002628346101018898510000008848' }),
  payment_link: brazilianOrder('payment_link', { uri: 'https://pay.example/7' }),
  offsite_card: brazilianOrder('offsite_card_pay', { last_four_digits: '5235', credential_id: '1234567' }),
  url_carousel: carousel(
    ['a', 'b'].map((name) => ({
      type: 'cta_url',
      header: cardHeader(),
      body: { text: name },
      action: { name: 'cta_url', parameters: { display_text: 'See', url: `https://shop.example/${name}` } },
    })),
  ),
  reply_carousel: carousel(
    ['a', 'b'].map((id) => ({
      header: cardHeader(),
      action: { buttons: [{ type: 'quick_reply', quick_reply: { id, title: id } }] },
    })),
  ),
  product_carousel: carousel(
    ['sku-1', 'sku-2'].map((id) => ({
      type: 'product',
      action: { product_retailer_id: id, catalog_id: '77' },
    })),
  ),
  request_contact_info: interactive('request_contact_info', { action: { name: 'request_contact_info' } }),
  voice_call: interactive('voice_call', {
    action: { name: 'voice_call', parameters: { display_text: 'Call us', ttl_minutes: 100, payload: 'p-1' } },
  }),
  call_permission_request: interactive('call_permission_request', {
    action: { name: 'call_permission_request' },
  }),
};
