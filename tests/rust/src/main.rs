//! Producers and consumers of rskafka in one process, driven by lines on standard input.
//!
//! A line is "produce ID name=value...", the same with "consume", or "stop ID", with tabs between
//! the fields. rskafka has no groups: a consumer reads its partitions from their start. A producer
//! sends each record in a call of its own, which rskafka retries by itself.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::Utc;
use rskafka::client::partition::{Compression, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder};
use rskafka::record::Record;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

type Options = HashMap<String, String>;
type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

const FETCH_BYTES: i32 = 1 << 20;
const FETCH_WAIT_MS: i32 = 500;

fn report(id: &str, event: &str, fields: &str) {
    println!("{{\"id\":\"{id}\",\"event\":\"{event}\"{fields}}}");
}

fn now() -> f64 {
    Utc::now().timestamp_micros() as f64 / 1e6
}

fn partitions(options: &Options) -> Result<Vec<i32>, std::num::ParseIntError> {
    options["partitions"].split(',').map(str::parse).collect()
}

async fn client(id: &str, options: &Options) -> Result<Client, rskafka::client::error::Error> {
    let brokers = options["prop.bootstrap.servers"]
        .split(',')
        .map(str::to_owned)
        .collect();
    ClientBuilder::new(brokers).client_id(id).build().await
}

async fn opened(
    client: &Client,
    options: &Options,
    partition: i32,
) -> Result<PartitionClient, rskafka::client::error::Error> {
    client
        .partition_client(&options["topic"], partition, UnknownTopicHandling::Retry)
        .await
}

async fn produce(id: Arc<str>, options: Options, stopping: Arc<AtomicBool>) -> Outcome {
    let client = client(&id, &options).await?;
    let partitions = partitions(&options)?;
    let rate: f64 = options["rate"].parse()?;
    let most: u64 = options["count"].parse()?;
    let size: usize = options["size"].parse()?;
    let mut sending = JoinSet::new();
    let began = Instant::now();
    report(&id, "started", "");
    for (at, partition) in partitions.iter().copied().enumerate() {
        let to = opened(&client, &options, partition).await?;
        let (id, stopping, others) = (id.clone(), stopping.clone(), partitions.len());
        sending.spawn(async move {
            for seq in 0u64.. {
                let number = seq * others as u64 + at as u64;
                if stopping.load(Ordering::Relaxed) || (most > 0 && number >= most) {
                    return;
                }
                if rate > 0.0 {
                    sleep_until(began + Duration::from_secs_f64(number as f64 / rate)).await;
                }
                send(&id, &to, partition, seq, size).await;
            }
        });
    }
    sending.join_all().await;
    Ok(())
}

async fn send(id: &str, to: &PartitionClient, partition: i32, seq: u64, size: usize) {
    let sent_at = now();
    let mut value = format!("{id}|{partition}|{seq}|{sent_at:.6}|").into_bytes();
    value.resize(size.max(value.len()), b'x');
    let record = Record {
        key: Some(partition.to_string().into_bytes()),
        value: Some(value),
        headers: BTreeMap::new(),
        timestamp: Utc::now(),
    };
    let place = format!(",\"partition\":{partition},\"seq\":{seq}");
    match to.produce(vec![record], Compression::NoCompression).await {
        Ok(offsets) => {
            let (offset, at) = (offsets[0], now());
            let latency_ms = (at - sent_at) * 1e3;
            let fields =
                format!(",\"offset\":{offset},\"at\":{at:.6},\"latency_ms\":{latency_ms:.3}");
            report(id, "acked", &(place + &fields));
        }
        Err(error) => {
            eprintln!("{id} {partition} {seq} {error}");
            report(id, "failed", &format!("{place},\"error\":\"see the log\""));
        }
    }
}

async fn consume(id: Arc<str>, options: Options, stopping: Arc<AtomicBool>) -> Outcome {
    let client = client(&id, &options).await?;
    let mut reading = JoinSet::new();
    for partition in partitions(&options)? {
        let from = opened(&client, &options, partition).await?;
        reading.spawn(read(id.clone(), from, partition, stopping.clone()));
    }
    report(&id, "started", "");
    for ended in reading.join_all().await {
        ended?;
    }
    Ok(())
}

async fn read(
    id: Arc<str>,
    from: PartitionClient,
    partition: i32,
    stopping: Arc<AtomicBool>,
) -> Outcome {
    let mut next = 0;
    while !stopping.load(Ordering::Relaxed) {
        let (records, _) = from
            .fetch_records(next, 1..FETCH_BYTES, FETCH_WAIT_MS)
            .await?;
        for found in records {
            let value = String::from_utf8(found.record.value.unwrap_or_default())?;
            let fields: Vec<&str> = value.split('|').collect();
            let (offset, at) = (found.offset, now());
            let latency_ms = (at - fields[3].parse::<f64>()?) * 1e3;
            let what = format!(
                ",\"partition\":{partition},\"offset\":{offset},\"producer\":\"{}\",\"seq\":{},\
                 \"at\":{at:.6},\"latency_ms\":{latency_ms:.3}",
                fields[0], fields[2]
            );
            report(&id, "consumed", &what);
            next = offset + 1;
        }
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Outcome {
    let mut stops: HashMap<String, Arc<AtomicBool>> = HashMap::new();
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let fields: Vec<&str> = line.split('\t').collect();
        let (verb, id): (String, Arc<str>) = (fields[0].into(), fields[1].into());
        if verb == "stop" {
            stops[&*id].store(true, Ordering::Relaxed);
            continue;
        }
        let pairs = fields[2..].iter().filter_map(|field| field.split_once('='));
        let options: Options = pairs
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        let stop = Arc::new(AtomicBool::new(false));
        stops.insert(id.to_string(), stop.clone());
        tokio::spawn(async move {
            let outcome = match verb.as_str() {
                "produce" => produce(id.clone(), options, stop).await,
                _ => consume(id.clone(), options, stop).await,
            };
            match outcome {
                Ok(()) => report(&id, "done", ""),
                Err(error) => {
                    eprintln!("{id} {error}");
                    report(&id, "crashed", ",\"error\":\"see the log\"");
                }
            }
        });
    }
    std::process::exit(0);
}
