package lockreport;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.SingleServerConfig;

/** Plays story.json, and fails if the library has the defect. Lengths and instants in it are in ms. */
class StoryTest {
    @TestFactory
    Stream<DynamicTest> tries() throws Exception {
        try (InputStream in = StoryTest.class.getResourceAsStream("/story.json")) {
            JsonNode script = new ObjectMapper().readTree(in);
            String title = script.get("title").asText();
            return IntStream.rangeClosed(1, script.get("tries").asInt()).mapToObj(n -> DynamicTest.dynamicTest(title + ", try " + n, () -> play(script)));
        }
    }

    private static void play(JsonNode script) throws Exception {
        try (Story story = new Story(script.path("fair").asBoolean() ? RedissonClient::getFairLock : RedissonClient::getLock)) {
            story.latency(script.get("latency_ms").get(0).asDouble(), script.get("latency_ms").get(1).asDouble());
            for (JsonNode c : script.get("clients")) {
                Story.Client client = story.client(c.get("name").asText(), (config, server) -> settings(script, c, config, server));
                if (c.path("per_call").asBoolean()) {
                    client.objectPerCall();
                }
            }
            for (JsonNode thread : script.get("threads")) {
                story.thread(thread.get("name").asText(), t -> steps(story, t, thread.get("steps")));
            }
            for (JsonNode f : script.path("faults")) {
                fault(story, f);
            }
            List<String> locks = new ArrayList<>();
            script.get("locks").forEach(name -> locks.add(name.asText()));
            story.play(script.get("length_ms").asDouble(), locks.toArray(new String[0]));
            check(story, script.get("check"));
        }
    }

    private static void settings(JsonNode script, JsonNode c, Config config, SingleServerConfig server) {
        config.setLockWatchdogTimeout(script.get("watchdog_ms").asLong());
        if (c.has("fair_wait_ms")) {
            config.setFairLockWaitTimeout(c.get("fair_wait_ms").asLong());
        }
        if (c.has("timeout_ms")) {
            server.setTimeout(c.get("timeout_ms").asInt());
        }
        if (c.has("retries")) {
            server.setRetryAttempts(c.get("retries").asInt());
        }
        if (c.has("pool_size")) {
            server.setConnectionPoolSize(c.get("pool_size").asInt());
        }
    }

    private static void steps(Story story, Story.Worker t, JsonNode steps) throws Exception {
        for (JsonNode s : steps) {
            String lock = s.path("lock").asText();
            switch (s.get("do").asText()) {
                case "at":
                    t.at(s.path("ms").asDouble());
                    break;
                case "sleep":
                    t.sleep(s.path("ms").asDouble());
                    break;
                case "acquire":
                    if (acquire(t, lock, s)) {
                        steps(story, t, s.path("steps"));
                    }
                    break;
                case "unlock":
                    t.unlock(lock);
                    break;
                case "force_unlock":
                    t.forceUnlock(lock);
                    break;
                case "interrupt":
                    story.interrupt(s.get("thread").asText());
                    break;
                case "close":
                    t.client.redisson.shutdown();
                    break;
                case "repeat":
                    for (int n = 0; s.has("until_ms") ? t.before(s.get("until_ms").asDouble()) : n < s.path("times").asInt(); n++) {
                        steps(story, t, s.path("steps"));
                    }
                    break;
                default:
                    throw new IllegalStateException("no step is called " + s.get("do"));
            }
        }
    }

    private static boolean acquire(Story.Worker t, String name, JsonNode s) {
        TimeUnit unit = s.path("seconds").asBoolean() ? SECONDS : MILLISECONDS;
        double leaseMs = s.path("lease_ms").asDouble();
        long lease = unit.convert((long) leaseMs, MILLISECONDS);
        boolean waits = s.has("wait_ms");
        long wait = unit.convert(s.path("wait_ms").asLong(), MILLISECONDS);
        if (waits || s.path("try").asBoolean()) {
            return t.tryLock(name, leaseMs, lock -> leaseMs > 0 ? lock.tryLock(wait, lease, unit) : waits ? lock.tryLock(wait, unit) : lock.tryLock());
        }
        boolean interruptible = s.path("interruptible").asBoolean();
        return t.lock(name, leaseMs, lock -> {
            if (leaseMs > 0 && interruptible) {
                lock.lockInterruptibly(lease, unit);
            } else if (leaseMs > 0) {
                lock.lock(lease, unit);
            } else if (interruptible) {
                lock.lockInterruptibly();
            } else {
                lock.lock();
            }
        });
    }

    private static void fault(Story story, JsonNode f) {
        if (f.path("rule").asBoolean()) {
            story.rule(rule(f));
            return;
        }
        double at = f.path("at_ms").asDouble();
        switch (f.get("do").asText()) {
            case "crash":
                story.at(at, () -> story.client(f.get("client").asText()).crash());
                break;
            case "cut":
                story.at(at, () -> story.client(f.get("client").asText()).proxy.cut(f.get("for_ms").asDouble()));
                break;
            case "delete":
                story.at(at, () -> story.delete(f.get("key").asText()));
                break;
            default:
                throw new IllegalStateException("no fault is called " + f.get("do"));
        }
    }

    private static Proxy.Rule rule(JsonNode f) {
        Proxy.Rule rule = new Proxy.Rule();
        if (f.has("client")) {
            rule.of(f.get("client").asText());
        }
        if (f.path("direction").asText().equals("request")) {
            rule.requests();
        } else if (f.path("direction").asText().equals("reply")) {
            rule.replies();
        }
        if (f.has("command")) {
            rule.command(f.get("command").asText());
        }
        if (f.has("role")) {
            rule.script(f.get("role").asText());
        }
        if (f.has("channel")) {
            rule.channel(f.get("channel").asText());
        }
        if (f.has("nth")) {
            rule.nth(f.get("nth").asInt());
        }
        if (f.has("every")) {
            rule.every(f.get("every").asInt());
        }
        if (f.has("from_ms")) {
            rule.from(f.get("from_ms").asDouble());
        }
        if (f.has("until_ms")) {
            rule.until(f.get("until_ms").asDouble());
        }
        switch (f.get("do").asText()) {
            case "drop":
                return rule.drop();
            case "hold":
                return rule.hold();
            case "reset":
                return rule.reset();
            case "delay":
                return rule.delay(f.get("for_ms").asDouble());
            case "error":
                return rule.error(f.path("text").asText());
            default:
                throw new IllegalStateException("no rule does " + f.get("do"));
        }
    }

    private static void check(Story story, JsonNode c) {
        String lock = c.path("lock").asText();
        String thread = c.path("thread").asText();
        double ms = c.path("ms").asDouble();
        switch (c.get("that").asText()) {
            case "assertOneOwner":
                story.assertOneOwner(lock);
                break;
            case "assertOrder":
                story.assertOrder(lock);
                break;
            case "assertCount":
                story.assertCount(lock, thread);
                break;
            case "assertAsksSeldom":
                story.assertAsksSeldom(lock, thread);
                break;
            case "assertNoGhost":
                story.assertNoGhost(lock, thread);
                break;
            case "assertFreeLockIsGiven":
                story.assertFreeLockIsGiven(lock, thread, ms);
                break;
            case "assertNoHoldForNobody":
                story.assertNoHoldForNobody(lock, thread, ms);
                break;
            case "assertHoldStays":
                story.assertHoldStays(lock, thread);
                break;
            case "assertLeaseIsNotLonger":
                story.assertLeaseIsNotLonger(lock, thread, ms);
                break;
            case "assertNoRenewalAfterUnlock":
                story.assertNoRenewalAfterUnlock(lock, thread);
                break;
            case "assertCallIsNot":
                story.assertCallIsNot(thread, c.get("call").asInt(), c.get("outcome").asText());
                break;
            default:
                throw new IllegalStateException("no check is called " + c.get("that"));
        }
    }
}
