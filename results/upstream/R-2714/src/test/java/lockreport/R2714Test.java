package lockreport;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** An interrupted acquire that is granted after all is renewed for nobody (2714, 4368). */
class R2714Test {
    @RepeatedTest(3)
    void lease() throws Exception {
        try (Story story = new Story(RedissonClient::getLock)) {
            story.latency(50, 50);
            Story.Client a = story.client("a", (config, server) -> {
                config.setLockWatchdogTimeout(6000);
            });
            story.thread("a/1", t -> {
                t.at(1000);
                t.tryLock("x", 0, lock -> lock.tryLock());
                t.sleep(15000);
            });
            story.thread("a/2", t -> {
                t.at(1050);
                story.interrupt("a/1");
            });
            story.play(7000, "x");
            story.assertNoRenewalAfterUnlock("x", "a/1");
        }
    }
}
