package lockreport;

import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** A message of the protocol of Redis: its bytes, and its words in the order in which they stand there. */
final class Resp {
    final byte[] raw;
    final List<String> words;

    private Resp(byte[] raw, List<String> words) {
        this.raw = raw;
        this.words = words;
    }

    /** Reads a message. It throws EOFException when the stream has ended. */
    static Resp read(InputStream in) throws IOException {
        ByteArrayOutputStream raw = new ByteArrayOutputStream();
        List<String> words = new ArrayList<>();
        for (long left = 1; left > 0; left--) {
            String line = line(in, raw);
            char type = line.charAt(0);
            if (type == '*' || type == '>' || type == '%') {
                left += Math.max(0, Long.parseLong(line.substring(1))) * (type == '%' ? 2 : 1);
            } else if (type == '$') {
                int length = Integer.parseInt(line.substring(1));
                if (length < 0) {
                    words.add("");
                    continue;
                }
                byte[] text = in.readNBytes(length + 2);
                if (text.length < length + 2) {
                    throw new EOFException();
                }
                raw.write(text);
                words.add(new String(text, 0, length, StandardCharsets.UTF_8));
            } else {
                words.add(line.substring(1));
            }
        }
        return new Resp(raw.toByteArray(), words);
    }

    private static String line(InputStream in, ByteArrayOutputStream raw) throws IOException {
        StringBuilder line = new StringBuilder();
        for (int b = in.read(); ; b = in.read()) {
            if (b < 0) {
                throw new EOFException();
            }
            raw.write(b);
            if (b == '\n') {
                return line.toString();
            }
            if (b != '\r') {
                line.append((char) b);
            }
        }
    }

    /** The bytes of a command. */
    static byte[] command(String... words) {
        StringBuilder text = new StringBuilder("*" + words.length + "\r\n");
        for (String w : words) {
            text.append("$").append(w.getBytes(StandardCharsets.UTF_8).length).append("\r\n").append(w).append("\r\n");
        }
        return text.toString().getBytes(StandardCharsets.UTF_8);
    }
}
