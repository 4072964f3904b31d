package lockreport;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** An unlock that found nothing takes one level off the watchdog, which goes on renewing what was entered more than once. */
class RWatchdogLevelTakenTest {
    @RepeatedTest(3)
    void lease() throws Exception {
        try (Story story = new Story(RedissonClient::getLock)) {
            story.latency(1, 1);
            Story.Client a = story.client("a", (config, server) -> {});
            story.thread("a/1", t -> {
                for (int i = 0; i < 2; i++) {
                    t.tryLock("x", 0, lock -> lock.tryLock());
                }
                t.tryLock("x", 1, lock -> lock.tryLock(0, 1, MILLISECONDS));
                t.unlock("x");
            });
            story.play(14000, "x");
            story.assertNoRenewalAfterUnlock("x", "a/1");
        }
    }
}
