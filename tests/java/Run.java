/** A producer or consumer at work in a thread of its own, until it is told to stop. */
abstract class Run implements Runnable {
    final String id;
    final Options options;
    volatile boolean stopping;

    Run(String id, Options options) {
        this.id = id;
        this.options = options;
    }

    /** The work; returns soon after {@link #stop}. */
    abstract void work() throws Exception;

    /** Asks the work to end; called from another thread. */
    void stop() {
        stopping = true;
    }

    @Override
    public final void run() {
        try {
            work();
            Events.write(id, "done");
        } catch (Throwable error) {
            error.printStackTrace();
            Events.write(id, "crashed", "error", error.toString());
        }
    }
}
