/** The passwords of twelve characters and more that attackers try first, in lower case and without what surrounds them. */
const COMMON = new Set(
  `password1234 password12345 password123456 passwordpassword password123! mypassword123 passw0rd1234
  p@ssw0rd1234 p@ssword1234 123456789012 1234567890123 1234567890 12345678901234567890 123123123123 111111111111
  000000000000 112233445566 123456123456 1q2w3e4r5t6y 1qaz2wsx3edc 1q2w3e4r5t6y7u 1qazxsw23edc qwertyuiop12
  qwertyuiop123 qwertyuiopas qwertyuiopasdf qwerty123456 qwerty1234567 qwertyqwerty qwerty12345678 asdfghjkl123
  zxcvbnm12345 abcdefghijkl abcdefghijklmnop abcd12345678 abc123abc123 abcdef123456 a1b2c3d4e5f6 iloveyou1234
  iloveyouforever iloveyou123456 letmein12345 letmeinplease welcome12345 welcome123456 welcome1234 administrator
  administrator1 admin1234567 admin123456789 adminadminadmin admin12345678 rootrootroot changeme1234 changemenow12
  changeme123456 correcthorsebatterystaple trustno1trustno1 football1234 baseball1234 superman1234 dragon123456
  monkey123456 princess1234 sunshine1234 liverpool123 whatsapp1234 whatsapp12345 facebook1234 heliograph12
  heliograph123 heliograph1234 heliographheliograph testtesttest test12345678 test1234test1234 secretsecret
  secret123456 defaultpassword temporarypassword temppassword companyname123 summer2024!! winter2025!! spring2026!!
  summer2025!! summer2026!! autumn2026!! november2026 december2026 october2026!`.split(/\s+/),
);

/** Whether a password is among those that are guessed first, or hardly any different characters long. */
export function isCommonPassword(password: string): boolean {
  const plain = password.trim().toLowerCase();
  return COMMON.has(plain) || new Set(plain).size < 4 || isRun(plain);
}

/** All of it counts up or down: abcdefghijklm, 9876543210987. */
function isRun(text: string): boolean {
  const steps = [...text]
    .slice(1)
    .map((char, at) => (char.codePointAt(0) ?? 0) - (text.codePointAt(at) ?? 0));
  const regular = (step: number) => steps.filter((one) => one === step || Math.abs(one) === 9).length;
  return regular(1) === steps.length || regular(-1) === steps.length;
}
