package lockreport;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** A tryLock without an answer in time returns false, but its acquire may hold the lock (7223, 7224). */
class R7223Test {
    @RepeatedTest(3)
    void linearizable() throws Exception {
        try (Story story = new Story(RedissonClient::getLock)) {
            story.latency(0.2, 2);
            Story.Client a = story.client("a", (config, server) -> {});
            Story.Client b = story.client("b", (config, server) -> {
                server.setTimeout(1000);
                server.setRetryAttempts(0);
            });
            Story.Client c = story.client("c", (config, server) -> {});
            story.thread("a/1", t -> {
                t.lock("x", 1000, lock -> lock.lock(1000, MILLISECONDS));
            });
            story.thread("b/1", t -> {
                t.at(200);
                t.tryLock("x", 10000, lock -> lock.tryLock(2500, 10000, MILLISECONDS));
            });
            story.thread("c/1", t -> {
                t.at(5000);
                t.tryLock("x", 0, lock -> lock.tryLock());
            });
            story.rule(new Proxy.Rule().of("b").replies().script("acquire").nth(3).delay(2000));
            story.play(9000, "x");
            story.assertCallIsNot("c/1", 1, "busy");
        }
    }
}
