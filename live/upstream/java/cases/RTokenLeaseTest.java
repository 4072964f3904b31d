package lockreport;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RFencedLock;

/** The fenced lock ignores the lease of lockAndGetToken. */
class RTokenLeaseTest {
    @RepeatedTest(TRIES)
    void lease() throws Exception {
        try (Story story = new Story((redisson, name) -> redisson.getFencedLock(name))) {
            Story.Client a = story.client("a", (config, server) -> {});
            story.thread("a/1", t -> t.lock("x", 2000, lock -> ((RFencedLock) lock).lockAndGetToken(2000, MILLISECONDS)));
            story.play(4000, "x");
            story.assertLeaseIsNotLonger("x", "a/1", 30000);
        }
    }
}
