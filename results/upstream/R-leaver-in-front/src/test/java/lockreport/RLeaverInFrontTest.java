package lockreport;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** A timed try of the fair lock whose time is over stays in the queue until its leave command runs, and others are refused although the lock is free. */
class RLeaverInFrontTest {
    @RepeatedTest(3)
    void linearizable() throws Exception {
        try (Story story = new Story(RedissonClient::getFairLock)) {
            story.latency(10, 10);
            Story.Client a = story.client("a", (config, server) -> {});
            Story.Client b = story.client("b", (config, server) -> {});
            Story.Client c = story.client("c", (config, server) -> {});
            Story.Client d = story.client("d", (config, server) -> {});
            story.thread("a/1", t -> {
                t.lock("x", 0, lock -> lock.lock());
                t.at(2000);
                t.unlock("x");
            });
            story.thread("b/1", t -> {
                t.at(1900);
                t.tryLock("x", 0, lock -> lock.tryLock(0, MILLISECONDS));
            });
            story.thread("c/1", t -> {
                t.at(2300);
                t.tryLock("x", 0, lock -> lock.tryLock(0, MILLISECONDS));
            });
            story.thread("d/1", t -> {
                t.at(2900);
                t.tryLock("x", 0, lock -> lock.tryLock(0, MILLISECONDS));
            });
            story.rule(new Proxy.Rule().requests().script("leave").delay(700));
            story.play(7000, "x");
            story.assertCallIsNot("d/1", 1, "busy");
        }
    }
}
