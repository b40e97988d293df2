from bench.pipeline.stages import Stage, stages, work_by_name


def _task(stage: int, start: int, end: int) -> str:
    return (
        f'{{"Event":"SparkListenerTaskEnd","Stage ID":{stage},"Stage Attempt ID":0,'
        f'"Task Info":{{"Launch Time":{start},"Finish Time":{end}}}}}'
    )


def _done(stage: int, start: int, end: int) -> str:
    return (
        f'{{"Event":"SparkListenerStageCompleted","Stage Info":{{"Stage ID":{stage},'
        f'"Stage Attempt ID":0,"Submission Time":{start},"Completion Time":{end}}}}}'
    )


def test_a_stage_knows_its_longest_and_its_median_task() -> None:
    log = [
        '{"Event":"SparkListenerLogStart"}',
        '{"Event":"SparkListenerJobStart","Stage IDs":[1,2],'
        '"Properties":{"spark.job.description":"Listing 2:<br/>file:/a/folder, ..."}}',
        _task(1, 0, 2000),
        _task(2, 0, 500),
        _task(1, 0, 1000),
        _task(1, 1000, 7000),
        _done(1, -5000, 7000),
        _done(3, 0, 1),
    ]
    (stage,) = stages(log)
    assert stage == Stage("Listing 2", seconds=7.0, work=9.0, longest=6.0, median=2.0, tasks=3)
    assert stage.skew == 3


def test_work_is_known_from_what_the_session_did() -> None:
    done = [Stage(name, 1.0, work, 1.0, 1.0, 1) for name, work in (("b", 1), ("a", 2), ("b", 3))]
    assert work_by_name(done) == {"b": 4, "a": 2}
