import { type TObject, type TSchema, Type } from 'typebox';
import { Amount, File, NamedFile, optional, Text } from './shape.ts';

const Header = Type.Object({
  type: Text,
  ...optional({ text: Text, image: File, video: File, document: NamedFile }).properties,
});

const Body = Type.Object({ text: Text });

const named = (parameters: TSchema) => Type.Object({ name: Text, parameters });

const Name = Type.Object({ name: Text });

const Section = Type.Object({
  title: Type.Optional(Text),
  rows: Type.Array(Type.Object({ id: Text, title: Text, description: Type.Optional(Text) })),
});

const ProductSection = Type.Object({
  title: Type.Optional(Text),
  product_items: Type.Array(Type.Object({ product_retailer_id: Text })),
});

const Anything = Type.Object({});

const FlowParameters = Type.Object({
  flow_message_version: Text,
  flow_cta: Text,
  ...optional({
    flow_id: Text,
    flow_name: Text,
    flow_token: Text,
    flow_action: Text,
    flow_action_payload: optional({ screen: Text, data: Anything }),
    mode: Text,
  }).properties,
});

const AddressParameters = Type.Object({
  country: Text,
  ...optional({
    values: Anything,
    saved_addresses: Type.Array(Type.Object({ id: Text, value: Anything })),
    validation_errors: Anything,
  }).properties,
});

const UrlParameters = Type.Object({ display_text: Text, url: Text });

const QuickReply = Type.Object({ type: Text, quick_reply: Type.Object({ id: Text, title: Text }) });

const Card = Type.Object({
  card_index: Type.Integer(),
  ...optional({ type: Text, header: Header, body: Body }).properties,
  action: optional({
    name: Text,
    parameters: UrlParameters,
    buttons: Type.Array(QuickReply),
    catalog_id: Text,
    product_retailer_id: Text,
  }),
});

const Address = optional({
  name: Text,
  address_line1: Text,
  address_line2: Text,
  city: Text,
  zone_code: Text,
  state: Text,
  country: Text,
  country_code: Text,
  postal_code: Text,
});

const Gateway = Type.Object({
  type: Text,
  configuration_name: Text,
  ...optional({
    preferred_payment_methods: Type.Array(Type.Object({ method: Text })),
    enabled_payment_options: Type.Array(Text),
    razorpay: optional({ receipt: Text, notes: Anything }),
    payu: Anything,
    billdesk: Anything,
    zaakpay: Anything,
  }).properties,
});

/** A setting has `type` and the member of that name: the first two in India, a link in both, the others in Brazil. */
const PaymentSetting = Type.Object({
  type: Text,
  ...optional({
    payment_gateway: Gateway,
    upi_intent_link: Type.Object({ link: Text }),
    payment_link: Type.Object({ uri: Text }),
    pix_dynamic_code: Type.Object({ code: Text, merchant_name: Text, key: Text, key_type: Text }),
    boleto: Type.Object({ digitable_line: Text }),
    offsite_card_pay: Type.Object({ last_four_digits: Text, credential_id: Text }),
  }).properties,
});

const OrderItem = Type.Object({
  name: Text,
  amount: Amount,
  quantity: Type.Integer(),
  ...optional({
    retailer_id: Text,
    image: File,
    sale_amount: Amount,
    country_of_origin: Text,
    importer_name: Text,
    importer_address: Address,
  }).properties,
});

const DescribedAmount = Type.Object({ ...Amount.properties, description: Type.Optional(Text) });

const Order = Type.Object({
  status: Text,
  subtotal: Amount,
  ...optional({
    type: Text,
    catalog_id: Text,
    items: Type.Array(OrderItem),
    tax: DescribedAmount,
    shipping: DescribedAmount,
    discount: Type.Object({
      ...DescribedAmount.properties,
      discount_program_name: Type.Optional(Text),
    }),
    expiration: Type.Object({ timestamp: Text, description: Type.Optional(Text) }),
  }).properties,
});

const OrderDetails = Type.Object({
  reference_id: Text,
  currency: Text,
  total_amount: Amount,
  ...optional({
    type: Text,
    payment_type: Text,
    payment_configuration: Text,
    payment_settings: Type.Array(PaymentSetting),
    beneficiaries: Type.Array(Address),
    order: Order,
  }).properties,
});

const OrderStatus = Type.Object({
  reference_id: Text,
  order: Type.Object({ status: Text, description: Type.Optional(Text) }),
});

const ACTIONS: Readonly<Record<string, TSchema>> = {
  button: Type.Object({
    buttons: Type.Array(Type.Object({ type: Text, reply: Type.Object({ id: Text, title: Text }) })),
  }),
  list: Type.Object({ button: Text, sections: Type.Array(Section) }),
  product: Type.Object({ catalog_id: Text, product_retailer_id: Text }),
  product_list: Type.Object({ catalog_id: Text, sections: Type.Array(ProductSection) }),
  carousel: Type.Object({ cards: Type.Array(Card) }),
  catalog_message: Type.Object({
    name: Text,
    parameters: Type.Optional(optional({ thumbnail_product_retailer_id: Text })),
  }),
  flow: named(FlowParameters),
  cta_url: named(UrlParameters),
  location_request_message: Name,
  address_message: named(AddressParameters),
  request_contact_info: Name,
  call_permission_request: Name,
  voice_call: Type.Object({
    name: Text,
    parameters: Type.Optional(optional({ display_text: Text, ttl_minutes: Type.Integer(), payload: Text })),
  }),
  order_details: named(OrderDetails),
  order_status: named(OrderStatus),
};

export const INTERACTIVE_SHAPES: ReadonlyMap<string, TObject> = new Map(
  Object.entries(ACTIONS).map(([type, action]) => [
    type,
    Type.Object({
      type: Type.Literal(type),
      ...optional({ header: Header, body: Body, footer: Body }).properties,
      action,
    }),
  ]),
);
